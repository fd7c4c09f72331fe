"""A runner's memory on the host: private memory for its inputs, and the sync page.

The candidate can change this code. The judge writes inputs into this process, and reads outputs out
of it, while the supervisor keeps the process stopped.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch

from tilewright.runner import calls
from tilewright.runner.calls import Answer, Function, PreparedCall, TimedAnswer, Watch
from tilewright.wire.cuda_driver import Block
from tilewright.wire.frames import Frame
from tilewright.wire.sync_page import (
    DONE,
    GO,
    OUTPUTS,
    PAUSE_S,
    PERMUTED,
    READY,
    SHARES_CORE,
)

AnyArena = TypeVar("AnyArena", Any, Block)

_MMAP_MAX, _TRIM_THRESHOLD = -4, -1
"""Parameters of mallopt(3): memory comes from the heap, and stays there when it is freed. Otherwise
each call would fault its outputs in again, at a time that varies."""
_clock, _sleep = time.monotonic, time.sleep
_read = os.read
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.malloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = [ctypes.c_size_t]
_libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
_libc.free.argtypes = [ctypes.c_void_p]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class CallMemory(ABC, Generic[AnyArena]):
    """Where the calls of a runner find their inputs and leave their outputs."""

    mark: Callable[[], Any] | None = None
    """Records an event in the current stream; `None` where there are no streams."""
    known_kernel: Function | None = None
    """A kernel of known length that calibrates the judge's clock; `None` where none is needed."""

    def __init__(self) -> None:
        self.arena: AnyArena | None = None
        self.page: memoryview | None = None
        self.moved: set[int] = set()
        """Places of outputs of the last call that were moved from the host to the device."""

    @property
    def inputs(self) -> AnyArena:
        if self.arena is None:
            raise RuntimeError("no input arena is mapped")
        return self.arena

    @property
    def sync_page(self) -> memoryview:
        if self.page is None:
            raise RuntimeError("no sync page is mapped")
        return self.page

    @abstractmethod
    def map(self, frame: Frame) -> tuple[dict[str, Any], tuple[int, ...]]:
        """Map shared memory; return fields of the answer, and descriptors to close after it."""

    @abstractmethod
    def private_copy(self, size: int) -> AnyArena:
        """Return private memory with the first `size` bytes of the arena, for a module to keep.

        By the time a baseline starts, the arena has grown to the inputs of several calls.
        """

    def to_device(self, function: Function) -> Function:
        """Return a loaded candidate with its weights where it computes."""
        return function

    def expose(self, values: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return dense tensors, or copies of them, where the judge can read them."""
        return values

    @abstractmethod
    def untimed(self, function: Function, call: PreparedCall, watch: Watch) -> Answer:
        """Call; return the output, its leaves as the judge can read them, and its structure."""

    @abstractmethod
    def timed(
        self, function: Function, fields: dict[str, Any], held: list[calls.Span]
    ) -> TimedAnswer:
        """Answer one timed call; return it, its leaves, structure, and self-reported time.

        `held` is where earlier outputs lie that the caller still holds.
        """


class InputMemory:
    """Private memory, on huge pages, into which the judge writes the inputs of each call.

    The address is fixed before a candidate is loaded, so the judge knows where to write. No file
    is behind these pages, so that no candidate can map them a second time.
    """

    RESERVED_BYTES = 1 << 36
    """Address space, not memory: the pages beyond the grown part cannot be touched."""

    def __init__(self) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.address: int = _libc.mmap(None, self.RESERVED_BYTES, 0, flags, -1, 0)
        if self.address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), "no address space for the inputs")
        self.buffer: Any = (ctypes.c_char * 0).from_address(self.address)

    def grow(self, size: int) -> None:
        """Make the first `size` bytes usable."""
        if size > self.RESERVED_BYTES:
            raise MemoryError(f"{size} bytes of inputs, at most {self.RESERVED_BYTES} fit")
        if _libc.mprotect(self.address, size, mmap.PROT_READ | mmap.PROT_WRITE):
            raise MemoryError(f"no memory for {size} bytes of inputs")
        _libc.madvise(self.address, size, mmap.MADV_HUGEPAGE)
        self.buffer = (ctypes.c_char * size).from_address(self.address)


class HostCallMemory(CallMemory[Any]):
    """Where calls on the CPU find their inputs and report their outputs."""

    def __init__(self) -> None:
        super().__init__()
        _libc.mallopt(_MMAP_MAX, 0)
        _libc.mallopt(_TRIM_THRESHOLD, -1)
        self.input_memory = InputMemory()
        self.go_on = -1
        """The end of a pipe: a byte says that the supervisor has seen what a call left behind."""

    def map(self, frame: Frame) -> tuple[dict[str, Any], tuple[int, ...]]:
        """Make memory for inputs and, the first time, map the sync page; return the answer.

        The first answer holds descriptors of this process's memory for the judge, opened before the
        candidate is there.
        """
        self.input_memory.grow(frame.fields["inputs"])
        self.arena = self.input_memory.buffer
        memory: tuple[int, ...] = ()
        if frame.fds:
            self.page = map_sync_page(frame.fds[0])
            self.go_on = os.dup(frame.fds[1])
            memory = (
                os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC),
                os.open("/proc/self/maps", os.O_RDONLY | os.O_CLOEXEC),
                os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC),
            )
        return {"base": self.input_memory.address}, memory

    def private_copy(self, size: int) -> mmap.mmap:
        private = mmap.mmap(-1, max(size, 1))
        private.write(memoryview(self.inputs).cast("B")[:size])
        return private

    def known_kernel(self, *_: object) -> tuple[()]:
        return ()

    def untimed(self, function: Function, call: PreparedCall, watch: Watch) -> Answer:
        with watch:
            output = calls.run(function, call)
        return output, *calls.deliver(output, call=call)

    def timed(
        self, function: Function, fields: dict[str, Any], held: list[calls.Span]
    ) -> TimedAnswer:
        """Report that the call is ready, compute once it is released, and raise the done flag."""
        page = self.sync_page
        call = calls.prepare(fields, self.inputs)
        sequence = fields["sequence"]
        calls.disable_gc()
        await_release(page, sequence, fields["wait_s"])
        leaves, structure = calls.deliver(calls.run(function, call), held, call)
        for place, address in enumerate(calls.addresses(leaves)):
            page[OUTPUTS + place] = address
        page[PERMUTED] = calls.permuted_places(leaves)
        page[DONE] = sequence
        # The supervisor stops this process now, which uses no CPU time until it may go on.
        _read(self.go_on, 8)
        calls.enable_gc()
        return call, leaves, structure, None


def grow_heap(size: int) -> None:
    """Touch `size` bytes of the heap and free them; they stay with this process."""
    address = _libc.malloc(size)
    if address:
        _libc.memset(address, 0, size)
        _libc.free(address)


def await_release(page: memoryview, sequence: int, wait_s: float) -> None:
    """Report that a call is ready, and spin until the supervisor releases it."""
    give_up, shares_core = _clock() + wait_s, page[SHARES_CORE]
    page[READY] = sequence
    while page[GO] != sequence:
        if shares_core:
            _sleep(PAUSE_S)
        if _clock() > give_up:
            raise TimeoutError("ready, but never released")


def map_sync_page(fd: int) -> memoryview:
    """Map the sync page, in units of 8 bytes."""
    return memoryview(mmap.mmap(fd, mmap.PAGESIZE)).cast("Q")
