"""The Linux calls that Python's standard library lacks, by number, for x86-64 and aarch64.

The processes of a sandbox call them before any foreign code. A wrapper raises `OSError` with the
kernel's reason where the kernel refuses.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import signal
import struct
from contextlib import suppress

# A PyDLL keeps the interpreter's lock over the call, so parent and child of a raw clone hold it.
_libc = ctypes.PyDLL(None, use_errno=True)

MACHINE = platform.machine()
_COLUMN = {"x86_64": 0, "aarch64": 1}.get(MACHINE)
NUMBERS = {
    "clone": (56, 220),
    "pivot_root": (155, 41),
    "capset": (126, 91),
    "seccomp": (317, 277),
    "pidfd_open": (434, 434),
    "close_range": (436, 436),
    "mount_setattr": (442, 442),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
}

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

# Spaces and the like in the paths of /proc.
_ESCAPE = re.compile(r"\\([0-7]{3})")
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def syscall(name: str, *arguments: int | bytes | ctypes.Array[ctypes.c_char]) -> int:
    if _COLUMN is None:
        raise OSError(errno.ENOSYS, f"{name}: no system call numbers for {MACHINE}")
    values = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return _checked(_libc.syscall(ctypes.c_long(NUMBERS[name][_COLUMN]), *values), name)


def clone(flags: int) -> int:
    """Fork into new namespaces; return the child's id in the caller, 0 in the child.

    No fork handler of Python or glibc runs, so the child may not start threads. Its own children
    may, if it forks them with `os.fork`.
    """
    return syscall("clone", flags | signal.SIGCHLD, 0, 0, 0, 0)


def prctl(option: int, *arguments: int) -> int:
    padded = [*arguments, 0, 0, 0, 0][:4]
    return _checked(_libc.prctl(option, *map(ctypes.c_ulong, padded)), f"prctl {option}")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    encoded = [os.fsencode(text) for text in (source, target, kind)]
    data = os.fsencode(options) if options else None
    _checked(_libc.mount(*encoded, ctypes.c_ulong(flags), data), f"mount {target}")


def unmount(target: str) -> None:
    _checked(_libc.umount2(os.fsencode(target), MNT_DETACH), f"unmount {target}")


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root of the mount namespace, and put the old root at `old`."""
    syscall("pivot_root", os.fsencode(new), os.fsencode(old))


def restrict_mount(target: str, flags: int, *, recursive: bool) -> None:
    """Add `flags` (MS_RDONLY and the like) to the mount at `target`, `recursive` those below."""
    # The first four MS_ flags and MOUNT_ATTR_ flags are the same bits.
    attributes = struct.pack("=4Q", flags, 0, 0, 0)
    encoded = os.fsencode(target)
    how = _AT_RECURSIVE if recursive else 0
    try:
        syscall("mount_setattr", _AT_FDCWD, encoded, how, attributes, len(attributes))
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        # Before Linux 5.12 each mount is changed by itself.
        for point in [target, *(_mounts_below(target) if recursive else [])]:
            kept = os.statvfs(point).f_flag & (MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
            mount("", point, "", MS_REMOUNT | MS_BIND | flags | kept)


def _mounts_below(target: str) -> list[str]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        points = [line.split()[4] for line in table]
    plain = [_ESCAPE.sub(lambda found: chr(int(found[1], 8)), point) for point in points]
    return [point for point in plain if point.startswith(target.rstrip("/") + "/")]


def close_all_but(kept: set[int]) -> None:
    """Close every descriptor that is not in `kept`."""
    first = 0
    for fd in sorted(fd for fd in kept if fd >= 0):
        _close_range(first, fd - 1)
        first = fd + 1
    _close_range(first, 0x7FFFFFFF)


def _close_range(first: int, last: int) -> None:
    if first > last:
        return
    try:
        syscall("close_range", first, last, 0)
    except OSError:
        for name in os.listdir("/proc/self/fd"):
            if first <= int(name) <= last:
                os.closerange(int(name), int(name) + 1)


def open_self() -> int:
    """Return a pidfd of the calling process, or -1 where the kernel has none (before 5.3)."""
    try:
        return syscall("pidfd_open", os.getpid(), 0)
    except OSError:
        return -1


def empty_bounding_set() -> None:
    """Empty the calling thread's bounding set, if it may: no exec can then add capabilities."""
    with suppress(OSError):
        for number in range(64):
            prctl(PR_CAPBSET_DROP, number)


def drop_capabilities() -> None:
    version_3 = struct.pack("=Ii", 0x20080522, 0)
    syscall("capset", version_3, bytes(24))


def forget_variables() -> None:
    _libc.clearenv()


def exit_interpreter(code: int) -> None:
    """End the process as the interpreter does: with exit handlers, flushed streams, destructors.

    It never returns, and no frame above sees an exception.
    """
    ctypes.pythonapi.Py_Exit(ctypes.c_int(code))
