"""The memory of a process tree: a cheap bound at each look, and a count where it is not enough.

Resident memory is only a part of what a process can hold. Files without a name (`memfd_create`) and
shared anonymous memory stay when nothing maps them. A descriptor in a socket's queue belongs to no
process. Page tables and the buffers of sockets and pipes belong to the kernel.

Each look therefore compares the machine's memory with that of an earlier look. Where the difference
could exceed the limit, a full count finds out what belongs to this tree.
"""

from __future__ import annotations

import math
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass

from tilewright.evaluator.processes.process_tree import ProcessTree
from tilewright.evaluator.processes.queued_descriptors import copy_of, peek, queued

FULL_COUNT_S = 2.0
"""Seconds between two full counts where none is due. Other programs that free memory hide what a
candidate takes at the same moment, so the cheap bound alone could be too small."""
SOCKET_BYTES, PIPE_BYTES = 1 << 20, 1 << 20
"""Most bytes in the queue of one socket and of one pipe: twice the usual `wmem_max` with the
kernel's own records, and the usual `pipe-max-size`."""
LIBRARY_BYTES = 1 << 30
"""Memory that the interpreter and its libraries may hold besides what a limit permits."""
POLL_INTERVAL_S = 0.05
"""Seconds between two looks: one takes 50 us, and a process fills half a gigabyte meanwhile."""
TMPFS = ("/tmp", "/dev/shm")
_PAGE, _BLOCK = os.sysconf("SC_PAGESIZE"), 512
_MAPPED = re.compile(
    rb"^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ ([0-9a-f]+):([0-9a-f]+) ([1-9]\d*) ", re.MULTILINE
)


@dataclass(frozen=True)
class MemoryUse:
    """The memory that one process tree holds, in bytes, as of one full count."""

    private: int
    """Anonymous memory and page tables. Pages that processes share count once."""
    objects: int
    """Shared memory and files without a name, mapped or not, each once."""
    tmpfs: int
    """Files in the sandbox's own file systems, which have a limit of their own."""
    unseen: float
    """The largest size of what no count shows: infinite if a queue could not be read."""

    def total(self, bound: int) -> int:
        """Return the bytes held, where `bound` bytes are the most that the machine can miss."""
        seen = self.private + self.objects
        return seen + int(min(max(bound - seen - self.tmpfs, 0), self.unseen))


class MemoryMeter:
    """Tells when a process tree holds more than its limit. Lifetime: the tree's."""

    def __init__(self, tree: ProcessTree, ours: Callable[[], Iterable[int]]) -> None:
        """Measure `tree`; `ours` returns the descriptors of this process that the tree can fill."""
        self._tree, self._ours = tree, ours
        self._known = 0
        self._before = MachineMemory(0, 0)
        self._full_at, self._look_at = math.inf, 0.0
        self._was_over = False
        self._excess: int | None = None

    def start(self) -> None:
        """Take the present state as that from which growth counts; the tree is still trusted."""
        self._tree.refresh()
        self._known, self._before = resident_bytes(self._tree.pids), machine_memory()
        self._full_at = time.monotonic() + FULL_COUNT_S

    def excess(self, allowed: int) -> int | None:
        """Return the bytes that the tree held when two looks found more than what is allowed.

        A process that starts a program shares all of its memory with a second one for a moment, so
        one look is not enough. A call soon after a look returns what that look found.
        """
        if self._excess is None and time.monotonic() >= self._look_at:
            self._excess = self._look(allowed + LIBRARY_BYTES)
            # Counted from the end: a count of many processes takes long.
            self._look_at = time.monotonic() + POLL_INTERVAL_S
        return self._excess

    def _look(self, limit: int) -> int | None:
        self._tree.refresh()
        present, now = machine_memory(), time.monotonic()
        self._before = self._before.roomier(present)
        bound = self._known + self._before.less(present)
        if max(bound, resident_bytes(self._tree.pids)) <= limit and now < self._full_at:
            self._was_over = False
            return None
        use = count(self._tree.pids, self._ours(), limit)
        total = use.total(bound)
        self._known, self._before = total + use.tmpfs, present
        self._full_at = now + FULL_COUNT_S
        was_over, self._was_over = self._was_over, total > limit
        return total if was_over and self._was_over else None


@dataclass(frozen=True)
class MachineMemory:
    """The machine's memory in bytes, at one moment."""

    available: int
    """Memory and swap space that it could still give away."""
    taken: int
    """Shared memory, files in memory and page tables, of all programs."""

    def roomier(self, other: MachineMemory) -> MachineMemory:
        """Return the most that was available, and the least that was taken."""
        return MachineMemory(max(self.available, other.available), min(self.taken, other.taken))

    def less(self, later: MachineMemory) -> int:
        """Return the most bytes that one program can have taken until `later`."""
        return max(self.available - later.available, later.taken - self.taken)


def machine_memory() -> MachineMemory:
    """Return the machine's memory now."""
    available = taken = 0
    with open("/proc/meminfo", "rb", 0) as file:
        for line in file.read(2048).splitlines():
            if line.startswith((b"MemAvailable:", b"SwapFree:")):
                available += int(line.split()[1]) << 10
            elif line.startswith((b"Shmem:", b"PageTables:")):
                taken += int(line.split()[1]) << 10
    return MachineMemory(available, taken)


def resident_bytes(pids: Iterable[int]) -> int:
    """Return the resident memory of processes; shared pages count each time."""
    total = 0
    for pid in pids:
        with suppress(OSError, IndexError), open(f"/proc/{pid}/statm", "rb", 0) as file:
            total += int(file.read(128).split()[1]) * _PAGE
    return total


def count(pids: list[int], ours: Iterable[int], limit: int) -> MemoryUse:
    """Count what processes hold; `limit` says from which size on shared pages must count once."""
    found = _HeldObjects()
    for pid in pids:
        found.walk(pid)
    for fd in ours:
        found.look_at(fd)
    anonymous, tables = _status_bytes(pids)
    if anonymous > limit:
        # Forked processes share pages until one of them writes.
        anonymous = min(anonymous, _proportional_bytes(pids))
    unseen = math.inf if found.out_of_sight else float(sum(found.buffers.values()) + found.unknown)
    return MemoryUse(anonymous + tables, sum(found.objects.values()), _tmpfs_bytes(pids), unseen)


class _HeldObjects:
    """Objects in memory that a tree holds, by device and inode. Lifetime: one count."""

    def __init__(self) -> None:
        self.objects: dict[tuple[int, int], int] = {}
        self.buffers: dict[tuple[int, int], int] = {}
        self.unknown = 0
        """Bytes that are mapped of objects whose size this user may not read."""
        self.out_of_sight = False
        """Whether objects may be held in a way that no count shows."""

    def walk(self, pid: int) -> None:
        """Look at every descriptor of every thread, since a thread may have its own table."""
        with suppress(OSError):
            self._add(os.stat(f"/proc/{pid}/exe"))
        with suppress(FileNotFoundError, ProcessLookupError):
            for task in os.listdir(f"/proc/{pid}/task"):
                base = f"/proc/{pid}/task/{task}"
                try:
                    names = os.listdir(f"{base}/fd")
                except PermissionError:
                    self.out_of_sight = True
                    continue
                for name in names:
                    with suppress(OSError):
                        new = self._add(os.stat(f"{base}/fd/{name}"))
                        self._look_into(pid, int(name), f"{base}/fdinfo/{name}", new=new)
            self._walk_maps(pid)

    def look_at(self, fd: int) -> None:
        """Add what a descriptor of this process holds."""
        new = self._add(os.fstat(fd))
        self._look_into(os.getpid(), fd, f"/proc/self/fdinfo/{fd}", new=new)

    def _add(self, found: os.stat_result) -> bool:
        """Add an open file; tell whether it is a socket that was not seen before."""
        key, kind = (found.st_dev, found.st_ino), stat.S_IFMT(found.st_mode)
        if kind == stat.S_IFREG and found.st_dev == _shared_memory_device():
            self.objects[key] = found.st_blocks * _BLOCK
        elif kind in (stat.S_IFIFO, stat.S_IFSOCK) and key not in self.buffers:
            self.buffers[key] = PIPE_BYTES if kind == stat.S_IFIFO else SOCKET_BYTES
            return kind == stat.S_IFSOCK
        return False

    def _look_into(self, pid: int, fd: int, info: str, *, new: bool) -> None:
        """Add the descriptors in the queue of a new socket, and in those of the sockets there."""
        expected = queued(info) if new else 0
        if not expected:
            return
        seen = 0
        try:
            with closing(peek(copy_of(pid, fd))) as inside:
                for each in inside:
                    seen += 1
                    self._add(os.fstat(each))
        except OSError:
            seen = 0
        # Some may have been taken out meanwhile; then the next look counts.
        self.out_of_sight |= seen < expected

    def _walk_maps(self, pid: int) -> None:
        """Add the objects that a process maps; most of such an object may be mapped nowhere."""
        with suppress(OSError), open(f"/proc/{pid}/maps", "rb") as file:
            for start, end, key in _shared_ranges(file.read()):
                if key in self.objects:
                    continue
                try:
                    path = f"/proc/{pid}/map_files/{start:x}-{end:x}"
                    self.objects[key] = os.stat(path).st_blocks * _BLOCK
                except PermissionError:
                    # Only root may follow this link.
                    self.unknown += end - start


def _shared_ranges(maps: bytes) -> Iterator[tuple[int, int, tuple[int, int]]]:
    device = _shared_memory_device()
    for start, end, major, minor, inode in _MAPPED.findall(maps):
        if os.makedev(int(major, 16), int(minor, 16)) == device:
            yield int(start, 16), int(end, 16), (device, int(inode))


def _shared_memory_device() -> int:
    """Return the device number of the kernel's own file system for memory without a name."""
    if not _DEVICE:
        fd = os.memfd_create("device", os.MFD_CLOEXEC)
        _DEVICE.append(os.fstat(fd).st_dev)
        os.close(fd)
    return _DEVICE[0]


_DEVICE: list[int] = []


def anonymous_bytes(pids: Iterable[int]) -> int:
    """Return the memory of processes that belongs to no file, with what is swapped out."""
    return _status_bytes(pids)[0]


def _status_bytes(pids: Iterable[int]) -> tuple[int, int]:
    """Return anonymous memory with what is swapped out, and page tables."""
    anonymous = tables = 0
    for pid in pids:
        with suppress(OSError), open(f"/proc/{pid}/status", "rb", 0) as file:
            for line in file.read(8192).splitlines():
                if line.startswith((b"RssAnon:", b"VmSwap:")):
                    anonymous += int(line.split()[1]) << 10
                elif line.startswith(b"VmPTE:"):
                    tables += int(line.split()[1]) << 10
    return anonymous, tables


def _proportional_bytes(pids: Iterable[int]) -> int:
    """Return anonymous memory; a page that n processes map counts 1/n in each of them."""
    total = 0
    for pid in pids:
        with suppress(OSError), open(f"/proc/{pid}/smaps_rollup", "rb", 0) as file:
            for line in file.read(8192).splitlines():
                if line.startswith((b"Pss_Anon:", b"SwapPss:")):
                    total += int(line.split()[1]) << 10
    return total


def _tmpfs_bytes(pids: list[int]) -> int:
    """Return the bytes in the sandbox's own file systems; 0 where it has none of its own."""
    total = 0
    for path in TMPFS:
        with suppress(OSError, IndexError):
            inside = f"/proc/{pids[0]}/root{path}"
            if os.stat(inside).st_dev != os.stat(path).st_dev:
                found = os.statvfs(inside)
                total += (found.f_blocks - found.f_bfree) * found.f_frsize
    return total
