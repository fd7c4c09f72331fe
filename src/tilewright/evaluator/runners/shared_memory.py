"""Shared memory between the judge and one contestant: sealed in size before anyone maps it."""

from __future__ import annotations

import fcntl
import mmap
import os

F_ADD_SEALS = 1033
F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW = 1, 2, 4


def sealed_memory(name: str, size: int) -> int:
    """Return the descriptor of `size` zero bytes that nobody can shrink or grow any more.

    Without the seal a contestant could truncate what the judge has mapped, and kill it.
    """
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
    return fd


def page_round(size: int) -> int:
    """Return `size` rounded up to whole pages, at least one."""
    return max(-(-size // mmap.PAGESIZE), 1) * mmap.PAGESIZE


class SyncPage:
    """One shared page by which a timed call is released and reported, without a system call."""

    def __init__(self) -> None:
        self.fd = sealed_memory("sync", mmap.PAGESIZE)
        self._map = mmap.mmap(self.fd, mmap.PAGESIZE)
        self.words = memoryview(self._map).cast("Q")

    def close(self) -> None:
        """Unmap and close."""
        self.words.release()
        self._map.close()
        os.close(self.fd)
