"""Frames over a socket: a length, a JSON header, raw bytes, and descriptors. Never pickle.

    4 bytes   length of the header, big-endian
    header    a JSON object; `kind` names the message, `body` is the number of bytes that follow
    body      raw bytes

No process trusts what it receives: bytes that are not exactly this format raise `FrameError`.
"""

from __future__ import annotations

import array
import json
import os
import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

Fields = dict[str, Any]
"""The header fields of a frame: plain JSON values by name."""
Tree = dict[str, Any]
"""The description of a value or a tensor in JSON; wire/tensors.py says what it holds."""
MAX_HEADER_BYTES = 1 << 20
"""Bytes of a header: 1 MiB holds every message, and bounds what a hostile peer makes us parse."""
MAX_BODY_BYTES = 1 << 26
"""Bytes of a body: 64 MiB holds the libraries of a large extension."""
MAX_FDS = 8
"""Descriptors of a frame; the largest message of ours has three."""
IDLE_S = 0.05
"""Seconds between two calls of `idle`: a process fills half a gigabyte of memory in that time."""
_FDS_BYTES = socket.CMSG_SPACE(MAX_FDS * array.array("i").itemsize)
_LENGTH = struct.Struct(">I")


class FrameError(Exception):
    """The received bytes are not a frame."""


class ChannelClosed(Exception):
    """The peer has closed the channel; no further frame can arrive."""


class DeadlineExceeded(Exception):
    """No complete frame arrived in time."""


@dataclass(frozen=True)
class Frame:
    """A message: its kind, the other header fields, raw bytes, and received descriptors."""

    kind: str
    fields: dict[str, Any]
    body: bytes = b""
    fds: tuple[int, ...] = ()


def encode(kind: str, fields: dict[str, Any], body: bytes = b"") -> bytes:
    """Return the bytes of a frame, or raise FrameError: the header is too large or not JSON."""
    header = {**fields, "kind": kind, "body": len(body)}
    try:
        text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise FrameError(f"header of {kind!r} is not plain JSON: {error}") from error
    if len(text) > MAX_HEADER_BYTES:
        raise FrameError(f"header of {kind!r} has {len(text)} bytes, at most {MAX_HEADER_BYTES}")
    return _LENGTH.pack(len(text)) + text + body


def decode_header(text: bytes) -> tuple[str, int, dict[str, Any]]:
    """Return kind, body length and remaining fields of a header, or raise FrameError."""
    try:
        header = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"header is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise FrameError("header is not a JSON object")
    kind, body = header.pop("kind", None), header.pop("body", 0)
    if not isinstance(kind, str):
        raise FrameError("header has no kind")
    if type(body) is not int or not 0 <= body <= MAX_BODY_BYTES:
        raise FrameError(f"body length {body!r} is outside 0..{MAX_BODY_BYTES}")
    return kind, body, header


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


class Channel:
    """Frames over a connected stream socket, which the channel owns."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._fds: list[int] = []

    def fileno(self) -> int:
        return self._sock.fileno()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The socket, and what was received with a frame that is not complete."""
        return (self._sock.fileno(), *self._fds)

    def close(self) -> None:
        """Close the socket and every descriptor received but not taken."""
        self._sock.close()
        self._close_received()

    def shut_down(self) -> None:
        """End the connection; a thread that waits for a frame gets `ChannelClosed`."""
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def _close_received(self) -> None:
        while self._fds:
            os.close(self._fds.pop())

    def send(
        self,
        kind: str,
        fields: dict[str, Any] | None = None,
        body: bytes = b"",
        fds: Sequence[int] = (),
        timeout_s: float = 30.0,
    ) -> None:
        """Send a frame; descriptors travel with its first byte."""
        data = memoryview(encode(kind, fields or {}, body))
        self._sock.settimeout(timeout_s)
        try:
            if fds:
                sent = socket.send_fds(self._sock, [data], list(fds))
                data = data[sent:]
            self._sock.sendall(data)
        except TimeoutError as error:
            raise DeadlineExceeded(f"the peer does not read {kind!r}") from error
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def receive(
        self, deadline: float | None = None, idle: Callable[[], None] | None = None
    ) -> Frame:
        """Return the next frame; `deadline` is on `time.monotonic`, in seconds.

        The channel calls `idle` every 50 ms, also while a peer sends bytes one by one; its
        exceptions end the wait.
        """
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size, deadline, idle))
        if not 2 <= length <= MAX_HEADER_BYTES:
            raise FrameError(f"header length {length} is outside 2..{MAX_HEADER_BYTES}")
        kind, size, fields = decode_header(self._exactly(length, deadline, idle))
        body = self._exactly(size, deadline, idle) if size else b""
        fds, self._fds = tuple(self._fds), []
        return Frame(kind, fields, body, fds)

    def _exactly(self, size: int, deadline: float | None, idle: Callable[[], None] | None) -> bytes:
        chunks: list[bytes] = []
        called = time.monotonic()
        while size:
            wait = 3600.0 if deadline is None else deadline - time.monotonic()
            if wait <= 0:
                raise DeadlineExceeded("no complete frame in time")
            self._sock.settimeout(min(wait, IDLE_S) if idle else wait)
            try:
                data, ancillary, _, _ = self._sock.recvmsg(min(size, 1 << 20), _FDS_BYTES)
            except TimeoutError:
                data, ancillary = None, []
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            self._take(ancillary)
            if idle and time.monotonic() >= called + IDLE_S:
                idle()
                called = time.monotonic()
            if data is None:
                continue
            if not data:
                raise ChannelClosed("the peer closed the channel")
            chunks.append(data)
            size -= len(data)
        return b"".join(chunks)

    def _take(self, ancillary: list[tuple[int, int, bytes]]) -> None:
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds = array.array("i")
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
                self._fds.extend(fds)
        if len(self._fds) > MAX_FDS:
            self._close_received()
            raise FrameError("too many descriptors")
