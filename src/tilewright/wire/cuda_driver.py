"""Device memory that the judge and a runner share, and semaphores that order their streams.

The judge allocates a block and exports a raw IPC handle. The runner opens it and can write all of
it, so the judge believes no content. A semaphore is a 32-bit number in a shared block: the stream
of one process writes it, and the stream of the other waits. So no host is in the timed path.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch

GATE_SEMAPHORE = 0
"""Offset in a work block, in bytes: the judge writes here to let a queued call start."""
DONE_SEMAPHORE = 256
"""Offset in a work block, in bytes: the runner writes here behind a call."""
SEMAPHORES_BYTES = 4096
"""Bytes at the head of a work block that hold semaphores alone: one page."""
BLOCK_GRAIN_BYTES = 2 << 20
"""Blocks are whole multiples of these bytes: CUDA maps a smaller one together with others."""
_NO_TIMING = 2
"""Flag of an event: it only orders streams, and has no time."""
_DEFAULT_FLAGS = 0
"""To write: with a memory barrier before. To wait: until the value is at least the given one."""


OUT_OF_MEMORY = 2
"""`CUDA_ERROR_OUT_OF_MEMORY`, the driver's code of a failed allocation."""


class _Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 64)]


def initialise() -> None:
    """Start the driver in this process, without a context."""
    ctypes.CDLL("libcuda.so.1").cuInit(0)


class Driver:
    """The calls of the CUDA driver that torch does not offer. Needs a current context."""

    def __init__(self) -> None:
        torch.cuda.init()
        torch.cuda.current_stream()
        torch.zeros(1, device="cuda")
        self._library = ctypes.CDLL("libcuda.so.1")
        self._everything = ctypes.c_void_p()
        """An event behind all work of this process's context."""
        self.call("cuEventCreate", ctypes.byref(self._everything), ctypes.c_uint(_NO_TIMING))

    def call(self, name: str, *values: Any) -> None:  # noqa: ANN401 - ctypes values
        code = getattr(self._library, name)(*values)
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(text))
            kind = torch.OutOfMemoryError if code == OUT_OF_MEMORY else RuntimeError
            raise kind(f"{name}: {(text.value or b'?').decode()}")

    def allocate(self, size: int) -> Block:
        """Return a new block of at least `size` bytes that other processes can open."""
        size = -(-max(size, 1) // BLOCK_GRAIN_BYTES) * BLOCK_GRAIN_BYTES
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        return Block(pointer.value, size)

    def free(self, block: Block) -> None:
        self.call("cuMemFree_v2", ctypes.c_uint64(block.address))

    def export(self, block: Block) -> str:
        """Return the handle of a block, in hexadecimal."""
        handle = _Handle()
        self.call("cuIpcGetMemHandle", ctypes.byref(handle), ctypes.c_uint64(block.address))
        return bytes(handle).hex()

    def open(self, handle: str, size: int) -> Block:
        """Map a block of another process, until this one ends."""
        pointer = ctypes.c_uint64()
        value = _Handle.from_buffer_copy(bytes.fromhex(handle))
        self.call("cuIpcOpenMemHandle_v2", ctypes.byref(pointer), value, ctypes.c_uint(1))
        return Block(pointer.value, size)

    def await_context(self, stream: int) -> None:
        """Queue a wait in `stream` for all work that this context has queued on any stream.

        Before CUDA 12.5 there is no such event; then the host waits for the device.
        """
        if not hasattr(self._library, "cuCtxRecordEvent"):
            self.call("cuCtxSynchronize")
            return
        context = ctypes.c_void_p()
        self.call("cuCtxGetCurrent", ctypes.byref(context))
        self.call("cuCtxRecordEvent", context, self._everything)
        self.call("cuStreamWaitEvent", ctypes.c_void_p(stream), self._everything, ctypes.c_uint(0))

    def write_semaphore(self, stream: int, address: int, value: int) -> None:
        """Queue the write of a semaphore behind all work of a stream."""
        self._queue("cuStreamWriteValue32_v2", stream, address, value)

    def await_semaphore(self, stream: int, address: int, value: int) -> None:
        """Queue a wait until a semaphore is at least `value` (modulo 2^32, by half)."""
        self._queue("cuStreamWaitValue32_v2", stream, address, value)

    def _queue(self, name: str, stream: int, address: int, value: int) -> None:
        place, number = ctypes.c_uint64(address), ctypes.c_uint32(value)
        self.call(name, ctypes.c_void_p(stream), place, number, ctypes.c_uint(_DEFAULT_FLAGS))


class Block:
    """Bytes of device memory at an address; `elements` gives tensors over them."""

    def __init__(self, address: int, size: int, owner: torch.Tensor | None = None) -> None:
        self.address = address
        self.size = size
        self._owner = owner
        """The tensor that holds the memory, where torch allocated it."""

    @classmethod
    def private(cls, size: int) -> Block:
        """Return a block of torch's own memory, which no other process can map."""
        owner = torch.empty(size, dtype=torch.uint8, device="cuda")
        return cls(owner.data_ptr(), size, owner)

    def __len__(self) -> int:
        return self.size

    def elements(self, dtype: torch.dtype, count: int, offset: int) -> torch.Tensor:
        """Return `count` elements from `offset` bytes on, as a tensor with a storage of its own."""
        size = count * dtype.itemsize
        if offset < 0 or offset + size > self.size:
            raise ValueError(f"{size} bytes at {offset} do not fit a block of {self.size}")
        return torch.as_tensor(_Bytes(self.address + offset, size), device="cuda").view(dtype)


class _Bytes:
    """A range of device memory, as torch's `as_tensor` reads it."""

    def __init__(self, address: int, size: int) -> None:
        # The name is one of the CUDA array interface, version 3 (Numba documentation).
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }
