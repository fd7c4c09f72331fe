"""The steps by which a sandboxed process gives up descriptors, limits, uid and environment.

The init and the payload of a sandbox run these steps before any foreign code. A step returns "" on
success, or the reason why this machine lacks its layer, and does not raise for that.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Iterable

from tilewright.runner.sandbox import syscalls

# The kernel never reuses process ids up to this one.
RESERVED_PIDS = 300
# Since this release pid_max belongs to the PID namespace; a write before it changes the host.
_PID_MAX_IS_OURS = (6, 14)


def reset_signals() -> None:
    """Give every signal the action of a fresh interpreter (SIGINT kills), and block none."""
    signal.set_wakeup_fd(-1)
    # The interpreter ignores these two, so that a write raises OSError and the process goes on.
    ignored = (signal.SIGPIPE, signal.SIGXFSZ)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        action = signal.SIG_IGN if number in ignored else signal.SIG_DFL
        if signal.getsignal(number) != action:
            signal.signal(number, action)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def die_with(parent: int) -> None:
    """Have the kernel kill this process when `parent` ends; die at once if it has ended."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def keep_only(fds: Iterable[int]) -> str:
    """Close every descriptor but `fds`; of 0, 1 and 2 those not in `fds` lead to /dev/null."""
    kept = set(fds)
    reason = ""
    try:
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        for standard in {0, 1, 2} - kept:
            os.dup2(null, standard)
            kept.add(standard)
    except OSError as error:
        reason = f"partial: {error}"
    syscalls.close_all_but(kept)
    return reason


def pin(cores: tuple[int, ...] | None) -> str:
    if not cores:
        return "no cores were named"
    try:
        os.sched_setaffinity(0, cores)
    except OSError as error:
        return str(error)
    return ""


def limit_pids(processes: int, *, own_namespace: bool) -> str:
    """Limit the processes of the caller's PID namespace, root's and reserved ids included."""
    if not own_namespace:
        return "pid_max: no PID namespace"
    try:
        release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    except ValueError:
        release = (0, 0)
    if release < _PID_MAX_IS_OURS:
        return "pid_max: this kernel has none for a namespace (needs 6.14)"
    return _write("/proc/sys/kernel/pid_max", str(RESERVED_PIDS + processes))


def volunteer_for_oom() -> str:
    """Make this process the first that the kernel kills when memory runs out."""
    return _write("/proc/self/oom_score_adj", "1000")


def _write(path: str, text: str) -> str:
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""


def kill_children() -> None:
    """Kill all descendants of the caller, a subreaper; return when none is left.

    The end of a PID namespace is reliable; here a process that forks fast enough can escape.
    """
    while True:
        try:
            with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
                for pid in file.read().split():
                    os.kill(int(pid), signal.SIGKILL)
            os.waitpid(-1, 0)
        except OSError:
            return


def limit(limits: dict[int, int]) -> str:
    """Set soft and hard limits: resource number to value. Lower limits stay."""
    missing = []
    for which, largest in limits.items():
        _, hard = resource.getrlimit(which)
        value = largest if hard == resource.RLIM_INFINITY else min(largest, hard)
        try:
            resource.setrlimit(which, (value, value))
        except (OSError, ValueError) as error:
            missing.append(f"limit {which}: {error}")
    return "; ".join(missing)


def map_self(uid: int, gid: int) -> str:
    """Map the caller's own user, and no other, into its new user namespace."""
    problems = (
        _write("/proc/self/setgroups", "deny"),
        _write("/proc/self/uid_map", f"{uid} {uid} 1"),
        _write("/proc/self/gid_map", f"{gid} {gid} 1"),
    )
    return "; ".join(filter(None, problems))


def become(uid: int) -> str:
    """Become `uid`, in the group of this number alone, without capabilities, in all threads.

    If it is impossible, only the calling thread loses its capabilities.
    """
    try:
        reason = _cannot_become(uid)
        syscalls.empty_bounding_set()
        if not reason:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
    except OSError as error:
        reason = f"uid {uid}: {error}"
    try:
        syscalls.drop_capabilities()
    except OSError as error:
        reason = reason or str(error)
    return reason


def _cannot_become(uid: int) -> str:
    if os.geteuid() != 0:
        return f"not root: uid {os.geteuid()} cannot become another"
    with open("/proc/self/uid_map", encoding="ascii") as file:
        ranges = [[int(text) for text in line.split()] for line in file]
    if not any(first <= uid < first + count for first, _, count in ranges):
        return f"this user namespace has no uid {uid}"
    os.seteuid(uid)
    try:
        # Another user cannot import modules of a Python below a home folder of mode 700.
        for folder in {sys.prefix, sys.base_prefix, os.path.dirname(os.__file__)}:
            os.scandir(folder).close()
    except OSError as error:
        return f"uid {uid} cannot read the interpreter: {error}"
    finally:
        os.seteuid(0)
    return ""


def replace_environment(variables: dict[str, str]) -> str:
    """Make `variables` the whole environment, for Python, for C, and in /proc/self/environ."""
    os.environ.clear()
    syscalls.forget_variables()
    os.environ.update(variables)
    time.tzset()
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            after_name = file.read().rpartition(")")[2].split()
    except OSError as error:
        return f"the old values stay in memory: {error}"
    # Fields 50 and 51 of proc(5); the state, field 3, comes first here.
    start, end = int(after_name[47]), int(after_name[48])
    if not 0 < start <= end:
        return "the old values stay in memory: the kernel hides where they are"
    _wipe(start, end, {f"{name}={value}" for name, value in variables.items()})
    return ""


def _wipe(start: int, end: int, kept: set[str]) -> None:
    """Zero the variables of the process's start but those in `kept`, which libraries point to."""
    here = start
    for entry in ctypes.string_at(start, end - start).split(b"\0"):
        if os.fsdecode(entry) not in kept:
            ctypes.memset(here, 0, min(len(entry), end - here))
        here += len(entry) + 1
