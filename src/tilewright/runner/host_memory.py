"""The contestant's memory on the host: an input arena, its mirror, and the token page."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from tilewright.runner import calls
from tilewright.wire.frames import Frame
from tilewright.wire.sync_page import DONE, GO, OUTPUTS, READY

_clock = time.monotonic
_disable_gc, _enable_gc = gc.disable, gc.enable
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class InputCopy:
    """Private memory like the input arena, on huge pages: timed calls read there.

    No other core has just written these pages, and they are placed alike in every side. Their
    address is fixed before any candidate is loaded, so that the supervisor knows where to look.
    """

    RESERVED = 1 << 36
    """Bytes of address space, not of memory: what is not grown into cannot be touched."""

    def __init__(self) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.address: int = _libc.mmap(None, self.RESERVED, 0, flags, -1, 0)
        if self.address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), "no address space for the mirror of the inputs")
        self._memory: Any = (ctypes.c_char * 0).from_address(self.address)

    def grow(self, size: int) -> None:
        """Make the first `size` bytes usable."""
        if size > self.RESERVED:
            raise MemoryError(f"{size} bytes of inputs, at most {self.RESERVED} fit the mirror")
        if _libc.mprotect(self.address, size, mmap.PROT_READ | mmap.PROT_WRITE):
            raise MemoryError(f"no memory for {size} bytes of inputs")
        _libc.madvise(self.address, size, mmap.MADV_HUGEPAGE)
        self._memory = (ctypes.c_char * size).from_address(self.address)

    def filled(self, inputs: mmap.mmap, base: int, size: int) -> Any:  # noqa: ANN401 - a buffer
        """Copy a slot of the arena here; return the mirror as a buffer."""
        ours = memoryview(self._memory).cast("B")
        ours[base : base + size] = memoryview(inputs)[base : base + size]
        return self._memory


class HostMemory:
    """Where calls on the CPU find their inputs and leave word of their outputs."""

    def __init__(self) -> None:
        self.arena: mmap.mmap | None = None
        self.input_copy = InputCopy()
        self.page: memoryview | None = None

    def map(self, frame: Frame) -> tuple[dict[str, Any], tuple[int, ...]]:
        """Map a new input arena and, the first time, the token page; return the answer.

        The first one carries this process's memory for the judge: it is opened before the
        candidate is there, and needs no privilege. The caller closes it.
        """
        fields = frame.fields
        self.arena = mmap.mmap(frame.fds[0], fields["inputs"])
        self.input_copy.grow(fields["inputs"])
        memory: tuple[int, ...] = ()
        if len(frame.fds) > 1:
            self.page = map_sync_page(frame.fds[1])
            maps = os.open("/proc/self/maps", os.O_RDONLY | os.O_CLOEXEC)
            memory = (_own_memory(), maps)
        return {"base": self.input_copy.address}, memory

    @property
    def inputs(self) -> mmap.mmap:
        """Return the input arena."""
        if self.arena is None:
            raise RuntimeError("no input arena is mapped")
        return self.arena

    def copied(self) -> mmap.mmap:
        """Return private memory with the arena's contents, for a module to keep."""
        private = mmap.mmap(-1, len(self.inputs))
        private.write(memoryview(self.inputs))
        return private

    def place(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function` where it computes: here it is there already."""
        return function

    mark = None
    known_kernel = None
    """The supervisor's clock needs no calibration."""

    def shown(self, values: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return tensors as they are: the judge reads all of this process's memory."""
        return values

    def untimed(
        self, function: Callable[..., Any], call: calls.Call, watched: AbstractContextManager[Any]
    ) -> tuple[Any, list[Any], str]:
        """Call; return the output, its leaves as the judge can read them, and its structure."""
        with watched:
            output = calls.run(function, call)
        return output, *calls.deliver(output)

    def timed(
        self, function: Callable[..., Any], fields: dict[str, Any]
    ) -> tuple[calls.Call, list[Any], str, float | None]:
        """Spin until released, compute, raise the done token."""
        page = self.page
        if page is None:
            raise RuntimeError("no token page is mapped")
        inputs = self.input_copy.filled(self.inputs, fields["base"], fields["size"])
        call = calls.prepare(fields, inputs)
        sequence = fields["sequence"]
        _disable_gc()
        await_release(page, sequence, fields["wait_s"])
        leaves, structure = calls.deliver(calls.run(function, call))
        for place, address in enumerate(calls.addresses(leaves)):
            page[OUTPUTS + place] = address
        page[DONE] = sequence
        _enable_gc()
        return call, leaves, structure, None


def _own_memory() -> int:
    """Return a descriptor of this process's memory, to be written too unless `/proc` forbids it."""
    try:
        return os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)


def await_release(page: memoryview, sequence: int, wait_s: float) -> None:
    """Say that all is ready for a call, and spin until it is released."""
    give_up = _clock() + wait_s
    page[READY] = sequence
    while page[GO] != sequence:
        if _clock() > give_up:
            raise TimeoutError("armed, but never released")


def map_sync_page(fd: int) -> memoryview:
    """Map the token page, as words of eight bytes."""
    return memoryview(mmap.mmap(fd, mmap.PAGESIZE)).cast("Q")
