"""The descriptors that lie in the queue of a socket, read without taking them out.

A process can send a descriptor over a Unix socket, close it, and never receive it. The file then
belongs to no process. A reader with another copy of the socket can peek at such messages.
"""

from __future__ import annotations

import array
import ctypes
import errno
import os
import platform
import re
import socket
from collections.abc import Generator
from contextlib import suppress

MAX_MESSAGES = 1024
"""Messages of one queue that are read; the kernel lets a user queue about 500 descriptors."""
MAX_DEPTH = 16
"""Sockets in the queues of sockets that are followed."""
_PIDFD_GETFD = 438
_SO_PEEK_OFF = 42
_BYTES, _CONTROL = 1 << 18, socket.CMSG_SPACE(253 * array.array("i").itemsize)
_COUNT = re.compile(rb"^scm_fds:\s*(\d+)", re.MULTILINE)
_libc = ctypes.CDLL(None, use_errno=True)


def queued(info: str) -> int:
    """Return how many descriptors lie in a socket's queue, by its file in /proc/PID/fdinfo."""
    with suppress(OSError), open(info, "rb", 0) as file:
        if match := _COUNT.search(file.read(4096)):
            return int(match[1])
    return 0


def copy_of(pid: int, fd: int) -> int:
    """Return a descriptor of this process for the open file of another; raise `OSError`."""
    if platform.machine() not in ("x86_64", "aarch64"):
        raise OSError(errno.ENOSYS, "no number of pidfd_getfd for this machine")
    process = os.pidfd_open(pid)
    try:
        found = _libc.syscall(ctypes.c_long(_PIDFD_GETFD), process, fd, 0)
        if found < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
        return int(found)
    finally:
        os.close(process)


def peek(
    fd: int, depth: int = 0, seen: set[tuple[int, int]] | None = None
) -> Generator[int, None, None]:
    """Yield each descriptor in the queue of the socket `fd`, and of the sockets among these.

    A descriptor is valid until the generator goes on. `fd` is closed at the end. `seen` holds the
    sockets whose queues were read: a socket may lie in its own queue, many times.
    """
    seen = set() if seen is None else seen
    with socket.socket(fileno=fd) as sock:
        found = os.fstat(sock.fileno())
        key = (found.st_dev, found.st_ino)
        if sock.family != socket.AF_UNIX or depth == MAX_DEPTH or key in seen:
            return
        seen.add(key)
        sock.setsockopt(socket.SOL_SOCKET, _SO_PEEK_OFF, 0)
        try:
            for _ in range(MAX_MESSAGES):
                message = _next_message(sock)
                if message is None:
                    return
                for each in message:
                    yield each
                    if os.path.exists(f"/proc/self/fd/{each}") and _is_socket(each):
                        yield from peek(os.dup(each), depth + 1, seen)
                    os.close(each)
        finally:
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, _SO_PEEK_OFF, -1)


def _next_message(sock: socket.socket) -> list[int] | None:
    """Return the descriptors of the next message, or `None` after the last one."""
    flags = socket.MSG_PEEK | socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
    try:
        data, ancillary, _, _ = sock.recvmsg(_BYTES, _CONTROL, flags)
    except OSError:
        return None
    fds = array.array("i")
    for level, kind, part in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(part[: len(part) - len(part) % fds.itemsize])
    return list(fds) if data or fds else None


def _is_socket(fd: int) -> bool:
    with suppress(OSError):
        return os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
    return False
