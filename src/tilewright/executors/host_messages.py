"""Messages to a warm host and its answers: one frame each. This module loads only the wire.

A client that attaches is handed to a supervisor, which then speaks to it directly; everything else
is a question to the host itself.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from dataclasses import asdict, dataclass
from pathlib import Path

from tilewright.wire.frames import Channel, Frame, FrameError

ATTACH, STATUS, STOP = "attach", "status", "stop"
"""Kinds of the frame that a client sends first."""
_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True)
class HostStatus:
    """The state of a warm host, as it answers."""

    pid: int
    version: str
    home: str
    clients: int
    """Clients that a supervisor serves now."""
    supervisors: int
    """Supervisors, with those that wait for a client."""
    idle_s: float
    """Seconds since it served its last client; 0 while it serves one."""
    ends_in_s: float | None
    """Seconds until it ends if no client comes; `None` while it serves one."""


def encode_status(status: HostStatus) -> dict[str, object]:
    """Return the fields of the frame of an answer."""
    return asdict(status)


def decode_status(frame: Frame) -> HostStatus:
    """Return the answer in a frame, or raise `FrameError`."""
    fields = frame.fields
    kinds = {"pid": int, "version": str, "home": str, "clients": int, "supervisors": int}
    numbers = ("idle_s", *(["ends_in_s"] if fields.get("ends_in_s") is not None else []))
    known = HostStatus.__dataclass_fields__.keys()
    right = (
        frame.kind == STATUS
        and fields.keys() == known
        and all(type(fields[name]) is kind for name, kind in kinds.items())
        and all(type(fields[name]) in (int, float) for name in numbers)
    )
    if not right:
        raise FrameError(f"{frame.kind!r} is no answer of a warm host")
    return HostStatus(**fields)


def host_folder(place: Path = Path("/tmp")) -> Path:
    """Return the folder in which the warm hosts of this user listen.

    Raises:
        PermissionError: another user can enter it or owns it.
    """
    folder = place / f"tilewright-hosts-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder}: not a folder of this user alone; remove it")
    return folder


def is_this_user(sock: socket.socket) -> bool:
    """Tell whether the process at the other end of a unix socket belongs to this user."""
    option = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(option)
    return bool(uid == os.getuid())


def connect(path: Path) -> Channel | None:
    """Connect to the warm host that listens at a path; `None`: none of this user does."""
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.connect(str(path))
        if is_this_user(sock):
            return Channel(sock)
    except OSError:
        pass
    sock.close()
    return None


def log_of(path: Path) -> Path:
    """Return the file to which the host of a socket writes its errors."""
    return path.with_suffix(".log")


def remove(path: Path) -> None:
    """Remove the socket of a host that listens no longer, and its log."""
    for file in (path, log_of(path)):
        file.unlink(missing_ok=True)
