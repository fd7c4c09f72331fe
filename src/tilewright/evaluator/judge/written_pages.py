"""Pages of a stopped process that hold something, and those that nobody has written.

A fresh page reads as zeros, and its reader pays for them. Linux 6.7 tells pages of zeros from
written ones (`PAGEMAP_SCAN`). Older kernels tell which pages are there. A page that was only read
is there too, and so is a huge page of zeros on some kernels that can tell.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import struct
from array import array

SCAN = 0xC0606610
"""`PAGEMAP_SCAN` of <linux/fs.h>: _IOWR('f', 16, struct pm_scan_arg)."""
SCAN_FORMAT = "=QQQQQQQQQQQQ"
"""`struct pm_scan_arg`: size, flags, start, end, walk end, ranges, their number, most pages,
categories: inverted, all of, any of, returned."""
PRESENT, SWAPPED, ZERO = 1 << 3, 1 << 4, 1 << 5
"""Categories of `PAGEMAP_SCAN`: pages in memory, in swap space, and the kernel's page of zeros."""
RANGES = 256
"""Ranges of one scan; another scan follows if there are more."""
IN_MEMORY, IN_SWAP = 1 << 63, 1 << 62
"""Bits of an entry of `/proc/PID/pagemap`."""
ENTRY_BYTES = 8
HIGHEST_ADDRESS = 1 << 56
"""No process has memory above this on x86-64 or Arm."""


class WrittenPages:
    """The pages of a process, by a descriptor of its pagemap. Lifetime: the descriptor's."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._can_scan = True

    def unwritten_bytes(self, start: int, stop: int) -> int:
        """Return the bytes between two addresses in whole pages that nobody has written."""
        first, last = -(-start // mmap.PAGESIZE), stop // mmap.PAGESIZE
        if last <= first:
            return 0
        if stop > HIGHEST_ADDRESS:
            # A report may name any address.
            return stop - start
        return (last - first - self._written(first, last)) * mmap.PAGESIZE

    def _written(self, first: int, last: int) -> int:
        if self._can_scan:
            try:
                return self._scanned(first * mmap.PAGESIZE, last * mmap.PAGESIZE)
            except OSError:
                self._can_scan = False
        try:
            entries = array("Q", os.pread(self._fd, (last - first) * ENTRY_BYTES, first * 8))
        except OSError:
            # Where nothing is mapped, nothing can be read either.
            return last - first
        return sum(1 for entry in entries if entry & (IN_MEMORY | IN_SWAP))

    def _scanned(self, start: int, stop: int) -> int:
        ranges, found = (ctypes.c_uint64 * (3 * RANGES))(), 0
        kinds = (ZERO, ZERO, PRESENT | SWAPPED, 0)
        while start < stop:
            given = (struct.calcsize(SCAN_FORMAT), 0, start, stop, 0)
            places = (ctypes.addressof(ranges), RANGES, 0)
            request = bytearray(struct.pack(SCAN_FORMAT, *given, *places, *kinds))
            count = fcntl.ioctl(self._fd, SCAN, request)
            found += sum(ranges[3 * i + 1] - ranges[3 * i] for i in range(count))
            walked = struct.unpack(SCAN_FORMAT, request)[4]
            if walked <= start:
                break
            start = walked
        return found // mmap.PAGESIZE

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._fd)
