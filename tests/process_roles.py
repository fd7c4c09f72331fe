"""A judge, runner or builder whose `main` runs in a thread of this process.

The socket pair and the shared memory are real. Only the process is missing, so that coverage
measures the code.
"""

from __future__ import annotations

import contextlib
import mmap
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from tilewright.wire.frames import Channel, Frame

ANSWER_S = 30.0


class Role:
    """One role and our end of its channel. Lifetime: until `close`."""

    def __init__(self, main: Callable[[socket.socket, dict[str, str]], None]) -> None:
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        self._thread = threading.Thread(target=self._play, args=(main, theirs))
        self._thread.start()
        self.ready = self.receive()

    @staticmethod
    def _play(main: Callable[[socket.socket, dict[str, str]], None], sock: socket.socket) -> None:
        # As at the end of a process: the channel closes however the role ends.
        with sock, contextlib.suppress(SystemExit):
            main(sock, {"rlimits": ""})

    def ask(
        self,
        kind: str,
        fields: dict[str, Any] | None = None,
        body: bytes = b"",
        fds: tuple[int, ...] = (),
    ) -> Frame:
        """Send a frame and return the answer."""
        self.channel.send(kind, fields, body, fds)
        return self.receive()

    def receive(self) -> Frame:
        """Return the next frame."""
        return self.channel.receive(time.monotonic() + ANSWER_S)

    def alive(self) -> bool:
        """Tell whether `main` still runs, after giving it time to end."""
        self._thread.join(0.5)
        return self._thread.is_alive()

    def close(self) -> None:
        """Close our end and wait for the thread."""
        self.channel.close()
        self._thread.join(ANSWER_S)
        assert not self._thread.is_alive()


class InputArea:
    """Private memory, as a runner makes it, into which the judge writes inputs."""

    def __init__(self, size: int = 1 << 20) -> None:
        self.inputs = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.address = torch.frombuffer(self.inputs, dtype=torch.uint8).data_ptr()
