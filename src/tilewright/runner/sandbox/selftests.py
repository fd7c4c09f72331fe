"""Attacks on the sandbox from inside, one for each layer: they show which layers hold on a host.

The payload of a test sandbox runs them; `doctor` and the supervisor read the answers. No other
layer stops an attack, so it gets through whenever its own layer is off.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import NamedTuple

from tilewright.runner.sandbox import hardening, seccomp
from tilewright.runner.sandbox.policy import Confinement, Main
from tilewright.wire.names import ISOLATION_LAYERS
from tilewright.wire.readiness import is_readable
from tilewright.wire.seccomp_notify import answer

_VARIABLE = "TILEWRIGHT_SELFTEST_SECRET"
_FEW = 16
_TIME_LIMIT_S = 60
_SURVIVOR_S = 3
_IPC_CREATE, _IPC_REMOVE, _IPC_STAT = 0o1666, 0, 2
_PTRACE_TRACEME = 0
_CLONE_NEWUSER = 0x10000000
_CLONE3, _IO_URING_SETUP = 435, 425

_libc = ctypes.CDLL(None, use_errno=True)


class Bait(NamedTuple):
    """Objects of the host that the sandbox must not reach."""

    outside: str
    """A file outside the view that every user may read."""
    private: str
    """A file inside the view that root alone may read."""
    fd: int
    """An open descriptor of `outside`."""
    inode: int
    name: str
    """Of a listening abstract socket."""
    port: int
    """A TCP port on 127.0.0.1 that listens."""
    segment: int
    """A System V segment that every user may use, or -1."""


@contextmanager
def bait() -> Iterator[Bait]:
    """Create the bait, and remove it at the end."""
    with ExitStack() as stack:
        folder = tempfile.mkdtemp(prefix="tilewright-selftest-")
        stack.callback(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        outside, private = os.path.join(folder, "outside"), os.path.join(folder, "private")
        for path, mode in ((outside, 0o644), (private, 0o600)):
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, mode))
        fd = os.open(outside, os.O_RDONLY)
        stack.callback(os.close, fd)
        segment = int(_libc.shmget(0, 4096, _IPC_CREATE))
        stack.callback(_libc.shmctl, segment, _IPC_REMOVE, None)
        name = os.path.basename(folder)
        local = stack.enter_context(socket.socket(socket.AF_UNIX))
        local.bind("\0" + name)
        local.listen()
        tcp = stack.enter_context(socket.socket(socket.AF_INET))
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        os.environ[_VARIABLE] = "open"
        stack.callback(os.environ.pop, _VARIABLE)
        port = tcp.getsockname()[1]
        yield Bait(outside, private, fd, os.fstat(fd).st_ino, name, port, segment)


def adapt(confinement: Confinement, bait: Bait) -> Confinement:
    """Return `confinement` with the bait in its view, and few processes."""
    return replace(
        confinement,
        read_only=(*confinement.read_only, bait.private),
        processes=min(confinement.processes, _FEW),
    )


def payload(bait: Bait, confinement: Confinement, results: int) -> Main:
    """Return a main that attacks, writes one line of JSON to `results`, and leaves a survivor."""

    def attack(applied: dict[str, str]) -> int:
        signal.alarm(_TIME_LIMIT_S)
        found = {}
        for layer in ISOLATION_LAYERS:
            got_through = ATTACKS[layer](bait, confinement) if layer in ATTACKS else ""
            reasons = (applied[layer], got_through and f"got through: {got_through}")
            found[layer] = "; ".join(filter(None, reasons))
        os.write(results, json.dumps(found).encode() + b"\n")
        os.close(results)
        if os.fork() == 0:
            # A daemon: a kill of the process group would miss it.
            os.setsid()
            time.sleep(_SURVIVOR_S)
            os._exit(0)
        return 0

    return attack


def collect(results: int) -> dict[str, str]:
    """Return the texts that the payload wrote; after a broken-off payload no layer counts."""
    with open(results, "rb", closefd=False) as file:
        line = file.readline()
    if not line.endswith(b"\n"):
        return dict.fromkeys(ISOLATION_LAYERS, "the self-test broke off")
    found = json.loads(line)
    return {layer: str(found[layer]) for layer in ISOLATION_LAYERS}


def survivor(alive: int) -> str:
    """Return a text if a process of the sandbox outlived it and holds the other end of `alive`."""
    return "" if is_readable(alive, 0.5) else "; got through: a daemon outlived the sandbox"


def _namespaces(bait: Bait, _: Confinement) -> str:
    record = ctypes.create_string_buffer(256)
    if bait.segment >= 0 and _libc.shmctl(bait.segment, _IPC_STAT, record) == 0:
        return "the host's System V memory can be used"
    return ""


def _network(bait: Bait, _: Confinement) -> str:
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
        if bait.name in file.read():
            return "the host's abstract sockets are listed"
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", bait.port), 1).close()
        return "a TCP port of the host answers"
    return ""


def _mount_view(bait: Bait, confinement: Confinement) -> str:
    if os.path.lexists(bait.outside):
        return "a path outside the view is there"
    for path in confinement.read_only:
        if os.path.exists(path) and not os.statvfs(path).f_flag & os.ST_RDONLY:
            return f"{path} is writable"
        with suppress(OSError):
            os.mkdir(os.path.join(path, ".tilewright-selftest"))
            return f"{path} was written to"
    return ""


def _descriptors(bait: Bait, _: Confinement) -> str:
    with suppress(OSError):
        if os.fstat(bait.fd).st_ino == bait.inode:
            return "a descriptor of the forkserver is open"
    return ""


def _cores(_: Bait, confinement: Confinement) -> str:
    more = os.sched_getaffinity(0) - set(confinement.core or ())
    return f"it may run on the cores {sorted(more)} too" if more else ""


def _limits(_: Bait, confinement: Confinement) -> str:
    found = []
    with suppress(OSError, ValueError):
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
        mmap.mmap(-1, confinement.memory_bytes, flags=flags).close()
        found.append("more memory than allowed")
    with suppress(OSError), tempfile.TemporaryFile(dir="/tmp") as file:
        os.ftruncate(file.fileno(), confinement.file_bytes + 1)
        found.append("a larger file than allowed")
    more = confinement.descriptors + 1
    if _count(more, lambda: os.open("/dev/null", os.O_RDONLY), os.close) == more:
        found.append("more descriptors than allowed")
    # Without a private uid pid_max is the only limit, and it allows the reserved ids.
    more = confinement.processes + (hardening.RESERVED_PIDS if os.getuid() == 0 else 0)
    if _count(more, _fork_sleeper, _kill) == more:
        found.append("more processes than allowed")
    return ", ".join(found)


def _count(most: int, make: Callable[[], int], undo: Callable[[int], object]) -> int:
    """Return how often `make` succeeds, at most `most` times, and undo all of it."""
    made: list[int] = []
    try:
        while len(made) < most:
            made.append(make())
    except OSError:
        pass
    finally:
        for each in made:
            undo(each)
    return len(made)


def _fork_sleeper() -> int:
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    return child


def _kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _environment(_: Bait, confinement: Confinement) -> str:
    if _VARIABLE in os.environ:
        return "a variable of the forkserver can be read"
    with open("/proc/self/environ", "rb") as file:
        names = {os.fsdecode(entry.split(b"=")[0]) for entry in file.read().split(b"\0")}
    more = names - confinement.environment.keys() - {""}
    return f"/proc/self/environ shows {sorted(more)}" if more else ""


def _other_uid(bait: Bait, _: Confinement) -> str:
    with suppress(OSError):
        os.close(os.open(bait.private, os.O_RDONLY))
        return "a private file of the forkserver's user can be read"
    with suppress(OSError):
        os.listdir(f"/proc/{os.getppid()}/fd")
        return "the descriptors of the init can be reached"
    return ""


def _landlock(_: Bait, __: Confinement) -> str:
    with suppress(OSError):
        os.close(os.open("/dev/zero", os.O_WRONLY))
        return "a device other than /dev/null can be written to"
    path = f"/tmp/tilewright-selftest-{os.getpid()}"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o755))
        os.execv(path, [path])
    except OSError as error:
        # The kernel finds that an empty file is no program only if Landlock lets it run.
        return "a program in /tmp can be run" if error.errno == errno.ENOEXEC else ""
    finally:
        with suppress(OSError):
            os.unlink(path)


def forbidden_calls() -> str:
    """Return the names of the system calls that this process may make but should not."""
    found = []
    for name, call in _CALLS.items():
        ctypes.set_errno(0)
        try:
            answer = call()
        except OSError as error:
            answer = -1
            ctypes.set_errno(error.errno or 0)
        if answer >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
            found.append(name)
    return ", ".join(found)


def _raw(number: int) -> Callable[[], int]:
    zeros = (ctypes.c_long(0), ctypes.c_long(0))
    return lambda: int(_libc.syscall(ctypes.c_long(number), *zeros))


_CALLS: dict[str, Callable[[], int]] = {
    "socket(AF_INET)": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).detach(),
    "sched_setaffinity": lambda: int(_libc.sched_setaffinity(0, 0, None)),
    "personality": lambda: int(_libc.personality(ctypes.c_ulong(0xFFFFFFFF))),
    "ptrace": lambda: int(_libc.ptrace(_PTRACE_TRACEME, 0, None, None)),
    "unshare": lambda: int(_libc.unshare(_CLONE_NEWUSER)),
    "clone3": _raw(_CLONE3),
    "io_uring_setup": _raw(_IO_URING_SETUP),
}


def _process_creation_guard(_: Bait, confinement: Confinement) -> str:
    """Start a process while a listener refuses every process."""
    guarded = "process_creation_guard" in confinement.layers
    return _in_child(_fork_refused if guarded else _fork_unasked)


def _fork_unasked() -> str:
    try:
        pid = os.fork()
    except OSError:
        return ""
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "a process was started although the guard forbids it"


def _fork_refused() -> str:
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        with suppress(OSError, IndexError):
            answer(socket.recv_fds(ours, 1, 1)[1][0], lambda: True)
        os._exit(0)
    try:
        listener = seccomp.listen()
    except OSError as error:
        return f"the guard has no listener: {error}"
    socket.send_fds(theirs, [b"."], [listener])
    os.close(listener)
    return _fork_unasked()


def _in_child(attack: Callable[[], str]) -> str:
    """Return the answer of `attack` in a child, whose state it may change."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write_end, attack().encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as answer:
        text = answer.read().decode()
    os.waitpid(child, 0)
    return text


ATTACKS: dict[str, Callable[[Bait, Confinement], str]] = {
    "ipc_uts_cgroup_namespaces": _namespaces,
    "network": _network,
    "mount_namespace": _mount_view,
    "file_descriptors": _descriptors,
    "cpu_affinity": _cores,
    "rlimits": _limits,
    "environment": _environment,
    "separate_uid": _other_uid,
    "landlock": _landlock,
    "seccomp": lambda *_: _in_child(forbidden_calls),
    "process_creation_guard": _process_creation_guard,
}
