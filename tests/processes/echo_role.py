"""A role for the forkserver that does what its frames say."""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

from tilewright.wire.frames import Channel


def main(sock: socket.socket, applied: dict[str, str]) -> None:
    """Answer `echo` frames; end at `end`, as the code there says."""
    channel = Channel(sock)
    channel.send("ready", {"applied": applied})
    while True:
        frame = channel.receive()
        if frame.kind == "end":
            _end(frame.fields)
            return
        sys.stdout.write("echoed\n")
        channel.send("echo", {"pid": os.getpid(), **frame.fields}, frame.body)


def _end(fields: dict[str, Any]) -> None:
    if fields.get("signal"):
        os.kill(os.getpid(), fields["signal"])
    if "code" in fields:
        raise SystemExit(fields["code"])
