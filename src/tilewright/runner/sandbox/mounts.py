"""The mount view: a root that holds an allow-list of the host's paths, and nothing else.

The init of a sandbox builds it, before any foreign code, on a tmpfs of its own mount namespace. So
the host keeps no mount and no folder of it, however the process ends.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import NamedTuple

from tilewright.runner.sandbox import syscalls
from tilewright.runner.sandbox.policy import Confinement

# A folder of every host; the tmpfs covers it inside our own mount namespace alone.
STAGE = "/tmp"
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
WRITABLE = ("/tmp", "/dev/shm")
_LINKS = (
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
)
_INODES = 65536
_SAFE = syscalls.MS_NOSUID | syscalls.MS_NODEV
_BIND = syscalls.MS_BIND | syscalls.MS_REC
_PROC_SETTINGS = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "driver", "mtrr", "scsi")


class _Source(NamedTuple):
    """A host path, opened before the stage covers it."""

    target: str
    fd: int
    link: str
    flags: int


def build(policy: Confinement, own_pids: bool) -> None:
    """Make the paths of `policy` the root of the caller, whose mount namespace must be its own.

    The working directory is then "/". The root, every path of `read_only`, and the machine's
    settings in /proc are read-only. /proc is new if the PID namespace is the caller's own. A path
    that the host lacks is left out. After an OSError the caller still sees the host.
    """
    sources: list[_Source] = []
    try:
        _collect(policy, sources)
        leave_host()
        syscalls.mount("tmpfs", STAGE, "tmpfs", _SAFE, "size=1m,mode=755")
        try:
            _fill(policy, sources)
            os.makedirs(STAGE + "/proc", exist_ok=True)
            mount_proc(STAGE + "/proc", own_pids)
            os.chdir(STAGE)
            syscalls.pivot_root(".", ".")
        except OSError:
            os.chdir("/")
            syscalls.unmount(STAGE)
            raise
    finally:
        for source in sources:
            os.close(source.fd)
    # The old root now covers the new one.
    syscalls.unmount(".")
    os.chdir("/")
    syscalls.restrict_mount("/", syscalls.MS_RDONLY, recursive=False)


def leave_host() -> None:
    """Separate later mounts of the caller from those of the host."""
    syscalls.mount("", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE)


def _collect(policy: Confinement, sources: list[_Source]) -> None:
    """Append an open source for each path of the view, parents before children."""
    seen: set[str] = set()
    for path in sorted({os.path.normpath(path) for path in policy.read_only}):
        if any(path == done or path.startswith(done + "/") for done in seen):
            continue
        if _append(sources, path, syscalls.MS_RDONLY | _SAFE):
            seen.add(path)
    for path in (*DEVICES, *policy.devices):
        _append(sources, path, syscalls.MS_NOSUID | syscalls.MS_NOEXEC)


def _append(sources: list[_Source], path: str, flags: int) -> bool:
    try:
        link = os.readlink(path) if os.path.islink(path) else ""
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC | (os.O_NOFOLLOW if link else 0))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return False
        raise
    sources.append(_Source(path, fd, link, flags))
    return True


def _fill(policy: Confinement, sources: list[_Source]) -> None:
    replaced = {source.target for source in sources}
    for path in WRITABLE:
        os.makedirs(STAGE + path, exist_ok=True)
        if path not in replaced:
            options = f"size={policy.writable_tmp_bytes},nr_inodes={_INODES},mode=1777"
            syscalls.mount("tmpfs", STAGE + path, "tmpfs", _SAFE, options)
    for link, goal in _LINKS:
        os.symlink(goal, STAGE + link)
    for source in sources:
        _attach(source)


def _attach(source: _Source) -> None:
    target = STAGE + source.target
    if os.path.lexists(target) and source.link:
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if source.link:
        os.symlink(source.link, target)
        return
    if stat.S_ISDIR(os.fstat(source.fd).st_mode):
        os.makedirs(target, exist_ok=True)
    elif not os.path.lexists(target):
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    syscalls.mount(f"/proc/self/fd/{source.fd}", target, "", _BIND)
    syscalls.restrict_mount(target, source.flags, recursive=True)


def mount_proc(target: str, own_pids: bool) -> None:
    """Mount at `target` a /proc of the caller's PID namespace, the machine's settings read-only."""
    if own_pids:
        syscalls.mount("proc", target, "proc", _SAFE | syscalls.MS_NOEXEC)
    else:
        syscalls.mount("/proc", target, "", _BIND)
    # Some of it stays writable: the CUDA driver writes the names of its threads to /proc/self, and
    # does not start without that.
    for name in _PROC_SETTINGS:
        path = f"{target}/{name}"
        if os.path.exists(path):
            syscalls.mount(path, path, "", _BIND)
            syscalls.restrict_mount(path, syscalls.MS_RDONLY, recursive=True)
