"""The supervisor's end of the sync page, and the pipe by which a runner goes on after a call."""

from __future__ import annotations

import fcntl
import mmap
import os
import time
from typing import NamedTuple

from tilewright.wire.sync_page import OUTPUTS, PAUSE_S, PERMUTED, SHARES_CORE

SPIN_CHECK = 512
"""Reads of the sync page between two checks of channel and deadline."""


def sealed_memory(name: str, size: int) -> int:
    """Return the descriptor of `size` zero bytes whose size cannot change any more.

    Without the seal a runner could truncate memory that the judge has mapped, and kill the judge.
    """
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def page_round(size: int) -> int:
    """Return `size` rounded up to whole pages, at least one."""
    return max(-(-size // mmap.PAGESIZE), 1) * mmap.PAGESIZE


class ReportedOutputs(NamedTuple):
    """A runner's report of the outputs of a timed call. The judge checks where they may lie."""

    addresses: list[int]
    permuted: list[int]
    """Places of those with the strides of the reference's outputs; the others are contiguous."""


class SyncPage:
    """Shared flags that release a timed call and report its end without a system call."""

    def __init__(self) -> None:
        self.fd = sealed_memory("sync", mmap.PAGESIZE)
        # Two ends with flags of their own: a candidate must not be able to block the supervisor.
        self.go_on, self._go_on_writer = os.pipe2(os.O_CLOEXEC)
        """The runner's end of a pipe: a byte in it tells the runner to go on after a call."""
        os.set_blocking(self._go_on_writer, False)
        self._map = mmap.mmap(self.fd, mmap.PAGESIZE)
        self.flags = memoryview(self._map).cast("Q")
        self._shares_core = False

    def share_core(self) -> None:
        """Sleep where the runner or its supervisor would spin: they have one core together."""
        self._shares_core = True
        self.flags[SHARES_CORE] = 1

    def spin(self, flag: int, sequence: int) -> bool:
        """Read a flag many times; tell whether it has the number of the call."""
        flags = self.flags
        for _ in range(SPIN_CHECK):  # noqa: SIM110 - a generator is slower for each look
            if flags[flag] == sequence:
                return True
        return False

    def pause(self) -> None:
        """Let the runner go on if it has the supervisor's own core."""
        if self._shares_core:
            time.sleep(PAUSE_S)

    def let_go_on(self) -> bool:
        """Let the runner go on after a call; tell whether the pipe took the byte.

        It does not if the runner has closed or filled it.
        """
        try:
            return os.write(self._go_on_writer, b"\0") == 1
        except OSError:
            return False

    def outputs(self, count: int) -> ReportedOutputs:
        """Return what the runner has written of the outputs of its last call."""
        addresses, bits = list(self.flags[OUTPUTS : OUTPUTS + count]), self.flags[PERMUTED]
        return ReportedOutputs(addresses, [place for place in range(count) if bits >> place & 1])

    def close(self) -> None:
        """Unmap and close."""
        self.flags.release()
        self._map.close()
        os.close(self.fd)
        os.close(self.go_on)
        os.close(self._go_on_writer)
