"""Frames arrive unchanged, and arbitrary bytes only end the channel."""

from __future__ import annotations

import array
import json
import os
import socket
import struct
import threading
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tilewright.wire.frames import (
    MAX_BODY_BYTES,
    MAX_FDS,
    MAX_HEADER_BYTES,
    Channel,
    ChannelClosed,
    DeadlineExceeded,
    Frame,
    FrameError,
    decode_header,
    encode,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), 1 << 63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children),
    max_leaves=12,
)
FIELDS = st.dictionaries(st.text().filter(lambda key: key not in ("kind", "body")), JSON)
OURS = (FrameError, ChannelClosed, DeadlineExceeded)


def channel_and_socket() -> tuple[Channel, socket.socket]:
    ours, theirs = socket.socketpair()
    return Channel(ours), theirs


def read_all(channel: Channel, frames: list[Frame]) -> None:
    while True:
        frames.append(channel.receive(soon()))


def soon() -> float:
    return time.monotonic() + 5.0


def header(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text


@given(st.text(), FIELDS, st.binary(max_size=3000), st.integers(0, MAX_FDS))
def test_a_sent_frame_arrives_unchanged(kind, fields, body, fd_count):
    receiver, raw = channel_and_socket()
    sender = Channel(raw)
    sent = [os.open("/dev/null", os.O_RDONLY) for _ in range(fd_count)]
    try:
        sender.send(kind, fields, body, sent)
        frame = receiver.receive(soon())
        same = [os.fstat(fd).st_rdev == os.stat("/dev/null").st_rdev for fd in frame.fds]
    finally:
        for fd in sent:
            os.close(fd)
    for fd in frame.fds:
        os.close(fd)
    sender.close()
    receiver.close()

    assert (kind, fields, body) == (frame.kind, frame.fields, frame.body)
    assert [True] * fd_count == same


@given(st.binary(max_size=400))
@example(b"")
@example(header(b"{}"))
@example(header(b'{"kind": 1}'))
@example(header(b'{"kind": "x", "body": -1}'))
@example(header(b'{"kind": "x", "body": true}'))
@example(header(b'{"kind": "x", "body": 1e3}'))
@example(header(b'{"kind": "x", "y": NaN}'))
@example(header(b'{"kind": "x", "y": -Infinity}'))
@example(header(b"[" * 60_000))
@example(header(b'{"kind": "x", "y": ' + b"9" * 5000 + b"}"))
@example(header(b'\xff\xfe{"kind"'))
@example(b"\x80\x04\x95K\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.")
def test_arbitrary_bytes_raise_only_documented_errors(data):
    receiver, raw = channel_and_socket()
    raw.sendall(data)
    raw.close()
    frames: list[Frame] = []
    with pytest.raises(OURS):
        read_all(receiver, frames)
    receiver.close()

    assert len(frames) <= len(data) // 6


@given(
    st.dictionaries(st.text(), JSON, max_size=4).map(lambda value: json.dumps(value).encode())
    | JSON.map(lambda value: json.dumps(value).encode())
    | st.binary(max_size=80)
)
def test_a_header_is_read_or_refused(text):
    try:
        kind, size, fields = decode_header(text)
    except FrameError:
        return

    assert isinstance(kind, str)
    assert 0 <= size <= MAX_BODY_BYTES
    assert "kind" not in fields
    assert "body" not in fields


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.binary(max_size=200))
def test_fragments_of_any_size_make_the_same_frame(sizes, body):
    receiver, raw = channel_and_socket()
    data = encode("result", {"n": 1}, body)

    def drip() -> None:
        start, turn = 0, 0
        while start < len(data):
            raw.sendall(data[start : start + sizes[turn % len(sizes)]])
            start += sizes[turn % len(sizes)]
            turn += 1

    thread = threading.Thread(target=drip)
    thread.start()
    frame = receiver.receive(soon())
    thread.join()
    raw.close()
    receiver.close()

    assert body == frame.body


@pytest.mark.parametrize("length", [0, 1, MAX_HEADER_BYTES + 1, (1 << 32) - 1])
def test_a_header_length_out_of_bounds_is_refused_at_once(length):
    receiver, raw = channel_and_socket()
    raw.sendall(struct.pack(">I", length))

    with pytest.raises(FrameError, match="header length"):
        receiver.receive(soon())
    raw.close()
    receiver.close()


@pytest.mark.parametrize("cut", [1, 4, 9, -1])
def test_a_truncated_frame_waits_no_longer_than_the_deadline(cut):
    receiver, raw = channel_and_socket()
    raw.sendall(encode("result", {"n": 1}, b"12345")[:cut])
    start = time.monotonic()

    with pytest.raises(DeadlineExceeded):
        receiver.receive(start + 0.05)
    raw.close()
    receiver.close()

    assert time.monotonic() - start < 2.0


def test_a_deadline_in_the_past_raises():
    receiver, raw = channel_and_socket()
    Channel(raw).send("late")

    with pytest.raises(DeadlineExceeded):
        receiver.receive(time.monotonic() - 1.0)
    raw.close()
    receiver.close()


def test_the_callback_of_a_wait_can_end_it():
    receiver, raw = channel_and_socket()
    looks = []

    def look() -> None:
        looks.append(1)
        if len(looks) == 3:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        receiver.receive(None, look)
    raw.close()
    receiver.close()


def test_waiting_without_a_deadline_ends_when_the_peer_closes():
    receiver, raw = channel_and_socket()
    threading.Timer(0.1, raw.close).start()

    with pytest.raises(ChannelClosed):
        receiver.receive()
    receiver.close()


def test_a_reset_connection_is_a_closed_channel():
    listener = socket.create_server(("127.0.0.1", 0))
    raw = socket.create_connection(listener.getsockname())
    ours, _ = listener.accept()
    receiver = Channel(ours)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.close()

    with pytest.raises(ChannelClosed):
        receiver.receive(soon())
    listener.close()
    receiver.close()


def test_too_many_descriptors_are_refused_and_closed():
    receiver, raw = channel_and_socket()
    before = len(os.listdir("/proc/self/fd"))
    null = os.open("/dev/null", os.O_RDONLY)
    data = encode("result", {})
    packed = array.array("i", [null] * MAX_FDS)
    for byte in data[:2]:
        raw.sendmsg([bytes([byte])], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, packed)])
    os.close(null)

    with pytest.raises(FrameError, match="descriptors"):
        receiver.receive(soon())
    assert before == len(os.listdir("/proc/self/fd"))
    raw.close()
    receiver.close()


def test_closing_a_channel_closes_unused_descriptors():
    receiver, raw = channel_and_socket()
    null = os.open("/dev/null", os.O_RDONLY)
    socket.send_fds(raw, [header(b"{}")], [null])
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FrameError):
        receiver.receive(soon())
    receiver.close()

    # One received descriptor came, then it and the socket went.
    assert before - 1 == len(os.listdir("/proc/self/fd"))
    os.close(null)
    raw.close()


@pytest.mark.parametrize(
    "fields", [{"x": b"bytes"}, {"x": float("nan")}, {"x": {1, 2}}, {"x": "y" * MAX_HEADER_BYTES}]
)
def test_an_invalid_frame_is_never_sent(fields):
    sender, raw = channel_and_socket()

    with pytest.raises(FrameError):
        sender.send("call", fields)
    sender.close()

    assert raw.recv(1) == b""
    raw.close()


def test_a_header_that_contains_itself_is_never_sent():
    loop: dict[str, object] = {}
    loop["x"] = loop

    with pytest.raises(FrameError):
        encode("call", loop)


def test_sending_to_a_closed_peer_raises():
    sender, raw = channel_and_socket()
    raw.close()

    with pytest.raises(ChannelClosed):
        sender.send("call")
    sender.close()


def test_sending_to_a_peer_that_does_not_read_ends_at_the_deadline():
    sender, raw = channel_and_socket()

    with pytest.raises(DeadlineExceeded):
        sender.send("call", {}, b"x" * (8 << 20), timeout_s=0.1)
    sender.close()
    raw.close()
