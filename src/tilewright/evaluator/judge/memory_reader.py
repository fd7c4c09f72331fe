"""Access to a runner's memory, which the judge reads without the runner's help."""

from __future__ import annotations

import ctypes
import mmap
import os
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from tilewright.evaluator.judge.memory_map import MemoryMap
from tilewright.evaluator.judge.written_pages import WrittenPages
from tilewright.wire.cuda_driver import SEMAPHORES_BYTES, Block
from tilewright.wire.names import OutputMemory
from tilewright.wire.tensors import Arena, Layout, elements

Span = tuple[int, int]
"""First address of an output, and the first one behind it."""


class Memory(ABC):
    """The memory in which a runner computes, with its inputs and its outputs."""

    @abstractmethod
    def write_inputs(self, base: int, image: Arena, size: int) -> bool:
        """Write `size` bytes of a master at `base` of the inputs; tell whether that worked."""

    @abstractmethod
    def inputs(self, base: int, size: int, windows: list[list[int]]) -> tuple[Arena, int]:
        """Return an arena with the inputs as they are now in `windows`, and where they begin.

        `windows` are byte ranges of the `size` bytes at `base`.
        """

    @abstractmethod
    def read(
        self, address: int, like: torch.Tensor, *, permuted: bool = False
    ) -> torch.Tensor | None:
        """Return a dense tensor of the shape and dtype of `like`; `None`: it cannot be read.

        It is contiguous unless it is `permuted`; then it has the strides of `like`.
        """

    def write(self, address: int, data: bytes) -> None:  # noqa: B027
        """Write into an output, as far as it can be written."""

    def fill(self, span: Span) -> bool:  # noqa: ARG002
        """Overwrite a whole output if that takes no time; tell whether it was done."""
        return False

    def overlaps_inputs(self, span: Span) -> bool:  # noqa: ARG002
        """Tell whether an output lies in the memory of the inputs."""
        return False

    def input_offset(self, address: int) -> int | None:  # noqa: ARG002
        """Return the offset of an address in the inputs; `None`: outputs cannot lie there."""
        return None

    def foreign(self, span: Span) -> set[OutputMemory]:  # noqa: ARG002
        """Return in which memory an output lies that is not private to the runner."""
        return set()

    def unwritten_bytes(self, span: Span) -> int:  # noqa: ARG002
        """Return the bytes of an output that nobody has written; its reader would pay for them."""
        return 0

    def is_callers_copy(self, span: Span) -> bool:  # noqa: ARG002
        """Tell whether an output lies where the runner's own caller has copied it."""
        return False

    def close(self) -> None:  # noqa: B027 - a device's block belongs to the launch gate
        """Read no more."""


@dataclass
class RunnerState:
    """The judge's record of one runner: its memory, outputs, and the weights that it can hold."""

    memory: Memory
    entries: list[list[Any]] = field(default_factory=list)
    mapping: dict[str, str] = field(default_factory=dict)
    outputs: dict[int, dict[int, Span]] = field(default_factory=dict)
    """Where the outputs lie that the caller holds: by the number of the call, then by place."""
    last: list[int] = field(default_factory=list)
    """Where the outputs of its last call lie."""
    permuted: set[int] = field(default_factory=set)
    """Places of those with the strides of the reference's outputs; the others are contiguous."""
    last_base: int = 0
    """Where the inputs of its last call begin, in its input memory."""


class HostMemory(Memory):
    """A process's memory through a descriptor of `/proc/PID/mem`. Lifetime: the descriptors'."""

    def __init__(self, memory: int, address: int, maps: int, pages: int) -> None:
        self._fd = memory
        self._address = address
        """Where the runner's inputs begin."""
        self._map = MemoryMap(maps)
        self._pages = WrittenPages(pages)
        self._seen = mmap.mmap(-1, mmap.PAGESIZE)
        self._size = 0

    def write_inputs(self, base: int, image: Arena, size: int) -> bool:
        data, done = memoryview(_host(image))[:size], 0
        self._size = max(self._size, base + size)
        while done < size:
            try:
                done += os.pwrite(self._fd, data[done:], self._address + base + done)
            except OSError:
                return False
        return True

    def inputs(self, base: int, size: int, windows: list[list[int]]) -> tuple[Arena, int]:
        if len(self._seen) < size:
            self._seen = mmap.mmap(-1, size)
        for start, stop in windows:
            into = memoryview(self._seen)[start:stop]
            if not _read_into(self._fd, self._address + base + start, into):
                # Whatever was there before is not what the judge wrote.
                into[:] = bytes(0xFF ^ value for value in into)
        return self._seen, 0

    def read(
        self, address: int, like: torch.Tensor, *, permuted: bool = False
    ) -> torch.Tensor | None:
        return read_tensor(self._fd, address, like, permuted=permuted)

    def write(self, address: int, data: bytes) -> None:
        # A runner may report any number as an address.
        with suppress(OSError, OverflowError):
            os.pwrite(self._fd, data, address)

    def overlaps_inputs(self, span: Span) -> bool:
        return span[0] < self._address + self._size and span[1] > self._address

    def input_offset(self, address: int) -> int | None:
        return address - self._address

    def foreign(self, span: Span) -> set[OutputMemory]:
        return self._map.kinds(*span)

    def unwritten_bytes(self, span: Span) -> int:
        return self._pages.unwritten_bytes(*span)

    def close(self) -> None:
        os.close(self._fd)
        self._map.close()
        self._pages.close()


def _host(arena: Arena) -> mmap.mmap:
    if not isinstance(arena, mmap.mmap):
        raise TypeError("the master of a process's inputs lies on the host")
    return arena


@dataclass(frozen=True)
class DeviceMemory(Memory):
    """Blocks of the judge that the runner has mapped; its calls allocate in `work`, at `base`."""

    input_block: Block
    work: Block
    base: int
    reserve: int
    """Bytes behind the semaphores where the runner copies outputs that lie elsewhere."""
    inputs_base: int
    """Where the runner says that it has mapped the inputs."""

    def write_inputs(self, base: int, image: Arena, size: int) -> bool:
        into = self.input_block.elements(torch.uint8, size, base)
        into.copy_(elements(image, torch.uint8, size))
        return True

    def inputs(self, base: int, size: int, windows: list[list[int]]) -> tuple[Arena, int]:
        del size, windows
        return self.input_block, base

    def fill(self, span: Span) -> bool:
        offset, size = span[0] - self.base, span[1] - span[0]
        if _contains(self.work, offset, size):
            self.work.elements(torch.uint8, size, offset).fill_(0xFF)
        return True

    def overlaps_inputs(self, span: Span) -> bool:
        # A runner that maps larger inputs may lie about their place. Its own memory stays its own.
        size = span[1] - span[0]
        return not _contains(self.work, span[0] - self.base, size) and (
            span[0] < self.inputs_base + len(self.input_block) and span[1] > self.inputs_base
        )

    def input_offset(self, address: int) -> int | None:
        return address - self.inputs_base

    def is_callers_copy(self, span: Span) -> bool:
        return 0 <= span[0] - self.base - SEMAPHORES_BYTES < self.reserve

    def read(
        self, address: int, like: torch.Tensor, *, permuted: bool = False
    ) -> torch.Tensor | None:
        size = like.numel() * like.element_size()
        if size == 0:
            return torch.empty(like.shape, dtype=like.dtype, device="cuda")
        for block, base in ((self.work, self.base), (self.input_block, self.inputs_base)):
            offset = address - base
            if _contains(block, offset, size) and offset % like.element_size() == 0:
                flat = block.elements(like.dtype, like.numel(), offset)
                return _shaped(flat, like, permuted=permuted).clone()
        return None


def _contains(block: Block, offset: int, size: int) -> bool:
    return offset >= 0 and offset + size <= len(block)


def private(device: torch.device, size: int) -> Arena:
    """Return memory of our own for the master of `size` bytes of inputs."""
    size = max(size, mmap.PAGESIZE)
    return Block.private(size) if device.type == "cuda" else mmap.mmap(-1, size)


def write_layout(runner: RunnerState, layout: Layout, device: torch.device) -> None:
    """Write the values of a layout at the beginning of a runner's inputs."""
    image = private(device, layout.size)
    layout.write(image)
    runner.memory.write_inputs(0, image, layout.size)


def _shaped(flat: torch.Tensor, like: torch.Tensor, *, permuted: bool) -> torch.Tensor:
    return flat.as_strided(like.shape, like.stride()) if permuted else flat.view(like.shape)


def read_tensor(
    memory: int, address: int, like: torch.Tensor, *, permuted: bool = False
) -> torch.Tensor | None:
    """Return a dense tensor of the shape and dtype of `like`; `None` where it cannot be read."""
    value = _shaped(torch.empty(like.numel(), dtype=like.dtype), like, permuted=permuted)
    if value.nbytes == 0:
        return value
    into = memoryview((ctypes.c_char * value.nbytes).from_address(value.data_ptr())).cast("B")
    return value if _read_into(memory, address, into) else None


def _read_into(memory: int, address: int, into: memoryview) -> bool:
    done = 0
    while done < len(into):
        try:
            count = os.preadv(memory, [into[done:]], address + done)
        except (OSError, OverflowError):
            return False
        if count == 0:
            return False
        done += count
    return True
