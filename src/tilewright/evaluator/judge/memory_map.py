"""The memory at an address of a stopped process: its own private memory, a file, or nothing.

Linux 6.11 answers this for one address (`PROCMAP_QUERY`); older kernels print the whole map.
"""

from __future__ import annotations

import fcntl
import os
import struct
from dataclasses import dataclass

from tilewright.wire.names import OutputMemory

QUERY = 0xC0686611
"""`PROCMAP_QUERY` of <linux/fs.h>: _IOWR('f', 17, struct procmap_query)."""
QUERY_FORMAT = "=QQQQQQQQQIIIIQQ"
"""`struct procmap_query`: size, flags, address; start, end, flags, page size, offset, inode;
device (2), lengths and addresses of name and build id."""
NEXT_AREA = 1 << 4
"""`PROCMAP_QUERY_COVERING_OR_NEXT_VMA`: the area of the address or the first above it."""
SHARED = 1 << 3
"""`PROCMAP_QUERY_VMA_SHARED` in the flags of an area."""


@dataclass(frozen=True)
class Area:
    """A range of addresses, mapped in one way."""

    start: int
    stop: int
    shared: bool
    of_file: bool


class MemoryMap:
    """The memory map of a process, by a descriptor of it. Lifetime: the descriptor's."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._answers_queries = True

    def kinds(self, start: int, stop: int) -> set[OutputMemory]:
        """Return what lies between two addresses, other than private memory of the process."""
        found, covered = set[OutputMemory](), start
        for area in self._areas(start, stop):
            if area.start > covered:
                found.add(OutputMemory.UNMAPPED)
            if area.shared:
                found.add(OutputMemory.SHARED)
            elif area.of_file:
                found.add(OutputMemory.FILE)
            covered = max(covered, area.stop)
        if covered < stop:
            found.add(OutputMemory.UNMAPPED)
        return found

    def _areas(self, start: int, stop: int) -> list[Area]:
        if self._answers_queries:
            try:
                return self._queried(start, stop)
            except OSError:
                self._answers_queries = False
        return [area for area in self._printed() if area.start < stop and area.stop > start]

    def _queried(self, start: int, stop: int) -> list[Area]:
        found, address = list[Area](), start
        while address < stop:
            size = struct.calcsize(QUERY_FORMAT)
            query = bytearray(struct.pack(QUERY_FORMAT, size, NEXT_AREA, address, *[0] * 12))
            try:
                fcntl.ioctl(self._fd, QUERY, query)
            except FileNotFoundError:
                # There is no area at or above the address.
                break
            _, _, _, first, end, flags, _, _, inode, *_ = struct.unpack(QUERY_FORMAT, query)
            if first < stop:
                found.append(Area(first, end, bool(flags & SHARED), inode != 0))
            address = end
        return found

    def _printed(self) -> list[Area]:
        os.lseek(self._fd, 0, os.SEEK_SET)
        text = b""
        while part := os.read(self._fd, 1 << 16):
            text += part
        found = []
        # A name may hold any other character that ends a line.
        for line in text.removesuffix(b"\n").split(b"\n") if text else ():
            span, rights, _, _, inode = line.split(maxsplit=5)[:5]
            first, end = (int(address, 16) for address in span.split(b"-"))
            found.append(Area(first, end, not rights.endswith(b"p"), inode != b"0"))
        return found

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._fd)
