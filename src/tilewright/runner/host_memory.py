"""A runner's memory on the host: the input arena, its private copy, and the sync page.

The candidate can change this code. The supervisor and the judge own the arena and the page. The
judge reads outputs out of this process while the supervisor keeps it stopped.
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
from tilewright.wire.sync_page import DONE, GO, OUTPUTS, READY

AnyArena = TypeVar("AnyArena", mmap.mmap, Block)

_clock = time.monotonic
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
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
    def private_copy(self) -> AnyArena:
        """Return private memory with the arena's values, for a module to keep."""

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
    def timed(self, function: Function, fields: dict[str, Any]) -> TimedAnswer:
        """Answer one timed call; return it, its leaves, structure, and self-reported time."""


class InputCopy:
    """Private memory like the input arena, on huge pages, where timed calls read their inputs.

    No other core has just written these pages, and every runner places them alike. The address is
    fixed before a candidate is loaded, so the supervisor knows where to look.
    """

    RESERVED_BYTES = 1 << 36
    """Address space, not memory: the pages beyond the grown part cannot be touched."""

    def __init__(self) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.address: int = _libc.mmap(None, self.RESERVED_BYTES, 0, flags, -1, 0)
        if self.address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), "no address space for the copy of the inputs")
        self._memory: Any = (ctypes.c_char * 0).from_address(self.address)

    def grow(self, size: int) -> None:
        """Make the first `size` bytes usable."""
        if size > self.RESERVED_BYTES:
            raise MemoryError(f"{size} bytes of inputs, at most {self.RESERVED_BYTES} fit the copy")
        if _libc.mprotect(self.address, size, mmap.PROT_READ | mmap.PROT_WRITE):
            raise MemoryError(f"no memory for {size} bytes of inputs")
        _libc.madvise(self.address, size, mmap.MADV_HUGEPAGE)
        self._memory = (ctypes.c_char * size).from_address(self.address)

    def filled(self, inputs: mmap.mmap, base: int, size: int) -> Any:  # noqa: ANN401 - a buffer
        """Copy a slot of the arena here; return the copy as a buffer."""
        ours = memoryview(self._memory).cast("B")
        ours[base : base + size] = memoryview(inputs)[base : base + size]
        return self._memory


class HostCallMemory(CallMemory[mmap.mmap]):
    """Where calls on the CPU find their inputs and report their outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.input_copy = InputCopy()

    def map(self, frame: Frame) -> tuple[dict[str, Any], tuple[int, ...]]:
        """Map a new input arena and, the first time, the sync page; return the answer.

        The first answer holds descriptors of this process's memory for the judge, opened before the
        candidate is there.
        """
        fields = frame.fields
        self.arena = mmap.mmap(frame.fds[0], fields["inputs"])
        self.input_copy.grow(fields["inputs"])
        memory: tuple[int, ...] = ()
        if len(frame.fds) > 1:
            self.page = map_sync_page(frame.fds[1])
            memory = (_own_memory(), os.open("/proc/self/maps", os.O_RDONLY | os.O_CLOEXEC))
        return {"base": self.input_copy.address}, memory

    def private_copy(self) -> mmap.mmap:
        private = mmap.mmap(-1, len(self.inputs))
        private.write(memoryview(self.inputs))
        return private

    def untimed(self, function: Function, call: PreparedCall, watch: Watch) -> Answer:
        with watch:
            output = calls.run(function, call)
        return output, *calls.deliver(output)

    def timed(self, function: Function, fields: dict[str, Any]) -> TimedAnswer:
        """Spin until the supervisor releases the call, compute, and raise the done flag."""
        page = self.sync_page
        inputs = self.input_copy.filled(self.inputs, fields["base"], fields["size"])
        call = calls.prepare(fields, inputs)
        sequence = fields["sequence"]
        calls.disable_gc()
        await_release(page, sequence, fields["wait_s"])
        leaves, structure = calls.deliver(calls.run(function, call))
        for place, address in enumerate(calls.addresses(leaves)):
            page[OUTPUTS + place] = address
        page[DONE] = sequence
        calls.enable_gc()
        return call, leaves, structure, None


def _own_memory() -> int:
    """Return a descriptor of this process's memory, writable unless `/proc` forbids it."""
    try:
        return os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)


def await_release(page: memoryview, sequence: int, wait_s: float) -> None:
    """Report that a call is ready, and spin until the supervisor releases it."""
    give_up = _clock() + wait_s
    page[READY] = sequence
    while page[GO] != sequence:
        if _clock() > give_up:
            raise TimeoutError("ready, but never released")


def map_sync_page(fd: int) -> memoryview:
    """Map the sync page, in units of 8 bytes."""
    return memoryview(mmap.mmap(fd, mmap.PAGESIZE)).cast("Q")
