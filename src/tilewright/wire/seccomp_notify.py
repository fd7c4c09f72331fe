"""Answers to seccomp user notifications: may a runner's process start another process?

The kernel vouches for a notification: nothing in it comes from the untrusted process.
"""

from __future__ import annotations

import errno
import fcntl
import struct
from collections.abc import Callable

_IOCTL_NOTIF_RECV = 0xC0502100
_IOCTL_NOTIF_SEND = 0xC0182101
_NOTIFICATION_BYTES = 80
"""Bytes of `struct seccomp_notif`."""
_FLAG_CONTINUE = 1
"""SECCOMP_USER_NOTIF_FLAG_CONTINUE: the kernel carries the call out. See seccomp_unotify(2)."""


def answer(listener: int, refused: Callable[[], bool]) -> None:
    """Wait for one notification; let the call proceed, or fail it with EPERM if `refused()`.

    It raises OSError once the notifying process, or every process with this filter, has ended.
    """
    notification = bytearray(_NOTIFICATION_BYTES)
    fcntl.ioctl(listener, _IOCTL_NOTIF_RECV, notification, True)
    (number,) = struct.unpack_from("=Q", notification)
    error, flags = (-errno.EPERM, 0) if refused() else (0, _FLAG_CONTINUE)
    fcntl.ioctl(listener, _IOCTL_NOTIF_SEND, struct.pack("=QqiI", number, 0, error, flags))
