"""Access to a runner's memory, which the judge reads without the runner's help."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import torch

from tilewright.wire.cuda_driver import Block
from tilewright.wire.tensors import Arena


class Memory(ABC):
    """The memory in which a runner computes; the defaults hold where calls read the arena itself.

    The arena is compared as a whole, so there is no copy of the inputs to look at.
    """

    @property
    def writable(self) -> bool:
        """Whether the judge can write inputs of a timed call into the runner's copy."""
        return False

    @abstractmethod
    def read(self, address: int, like: torch.Tensor) -> torch.Tensor | None:
        """Return a dense tensor of the shape and dtype of `like`; `None`: it cannot be read."""

    def differs(self, base: int, image: Arena, windows: list[list[int]]) -> bool:  # noqa: ARG002
        """Tell whether the copy that a timed call saw is other than `image` in some window."""
        return False

    def holds(self, address: int, size: int) -> bool:  # noqa: ARG002
        """Tell whether an address is in the copy of the inputs, `size` bytes in all."""
        return False

    def write(self, offset: int, data: bytes) -> bool:  # noqa: ARG002
        """Write into the copy of the inputs; tell whether all of it could be written."""
        return False

    def close(self) -> None:  # noqa: B027 - a device's block belongs to the launch gate
        """Read no more."""


@dataclass
class RunnerState:
    """The judge's record of one runner: its arena, its memory, and the weights that it can hold."""

    inputs: Arena
    memory: Memory
    entries: list[list[Any]] = field(default_factory=list)
    mapping: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class HostMemory(Memory):
    """A process's memory through a descriptor of `/proc/PID/mem`."""

    fd: int
    input_copy: int
    """Where the runner keeps the inputs of timed calls: an address in its memory."""
    maps: int
    """A descriptor of `/proc/PID/maps`."""

    @property
    def writable(self) -> bool:
        """Whether the descriptor was opened for writing: it is not where `/proc` is read-only."""
        return fcntl.fcntl(self.fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR

    def read(self, address: int, like: torch.Tensor) -> torch.Tensor | None:
        return read_tensor(self.fd, address, like)

    def differs(self, base: int, image: Arena, windows: list[list[int]]) -> bool:
        # A runner that maps the arena there has not copied it, and gains that time for other work.
        if not isinstance(image, mmap.mmap):
            raise TypeError("the master of a process's inputs lies on the host")
        first = self.input_copy + base
        if windows and not is_private(self.maps, first, first + len(image)):
            return True
        return differs(self.fd, first, image, windows)

    def holds(self, address: int, size: int) -> bool:
        return self.input_copy <= address < self.input_copy + size

    def write(self, offset: int, data: bytes) -> bool:
        try:
            return os.pwrite(self.fd, data, self.input_copy + offset) == len(data)
        except OSError:
            return False

    def close(self) -> None:
        os.close(self.fd)
        os.close(self.maps)


@dataclass(frozen=True)
class DeviceMemory(Memory):
    """A block of the judge that the runner has mapped at `base`; its calls allocate there."""

    block: Block
    base: int

    def read(self, address: int, like: torch.Tensor) -> torch.Tensor | None:
        offset, size = address - self.base, like.numel() * like.element_size()
        if size == 0:
            return torch.empty(like.shape, dtype=like.dtype, device="cuda")
        if offset < 0 or offset + size > len(self.block) or offset % like.element_size():
            return None
        return self.block.elements(like.dtype, like.numel(), offset).view(like.shape).clone()


def private(device: torch.device, size: int) -> Arena:
    """Return memory of our own for the master of `size` bytes of inputs."""
    size = max(size, mmap.PAGESIZE)
    return Block.private(size) if device.type == "cuda" else mmap.mmap(-1, size)


def read_tensor(memory: int, address: int, like: torch.Tensor) -> torch.Tensor | None:
    """Return a dense tensor of the shape and dtype of `like`; `None` where it cannot be read."""
    value = torch.empty(like.shape, dtype=like.dtype)
    if value.nbytes == 0:
        return value
    into = memoryview((ctypes.c_char * value.nbytes).from_address(value.data_ptr())).cast("B")
    return value if _read_into(memory, address, into) else None


def is_private(maps: int, first: int, stop: int) -> bool:
    """Tell whether all memory between two addresses is anonymous and private, by /proc/PID/maps."""
    os.lseek(maps, 0, os.SEEK_SET)
    text = b""
    while part := os.read(maps, 1 << 16):
        text += part
    covered = 0
    # A name may hold any other character that ends a line.
    for line in text.removesuffix(b"\n").split(b"\n") if text else ():
        span, rights, _, _, inode = line.split(maxsplit=5)[:5]
        start, end = (int(address, 16) for address in span.split(b"-"))
        shared = min(end, stop) - max(start, first)
        if shared > 0:
            if not rights.endswith(b"p") or inode != b"0":
                return False
            covered += shared
    return covered == stop - first


def differs(memory: int, address: int, image: mmap.mmap, windows: list[list[int]]) -> bool:
    """Tell whether any of `windows` (start, stop) at `address` is other than in `image`."""
    for start, stop in windows:
        there = memoryview(bytearray(stop - start))
        if not _read_into(memory, address + start, there) or there != image[start:stop]:
            return True
    return False


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
