"""A warm host goes on when it cannot serve one of its clients."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from tilewright.executors.host_messages import ATTACH, STATUS, STOP, connect, decode_status
from tilewright.executors.host_process import WarmHost, listen
from tilewright.wire.frames import Channel, ChannelClosed

ANSWER_S = 5.0
"""Seconds within which a host must answer."""


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Yield the socket of a host that can start no process."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    path = tmp_path / "host.sock"
    listener = listen(path)
    inode = path.stat().st_ino
    host = WarmHost(path, listener, inode, home=str(tmp_path), idle_s=60.0, release_s=30.0)
    serving = threading.Thread(target=host.run, daemon=True)
    serving.start()
    yield path
    stopping = asked(path, STOP)
    stopping.receive(time.monotonic() + ANSWER_S)
    stopping.close()
    serving.join(ANSWER_S)
    host.close()


def asked(path, kind, **fields) -> Channel:
    channel = connect(path)
    assert channel is not None
    channel.send(kind, fields)
    return channel


def test_a_process_that_cannot_be_started_costs_one_client_alone(path):
    client = asked(path, ATTACH, forkserver={})
    with pytest.raises(ChannelClosed):
        client.receive(time.monotonic() + ANSWER_S)
    client.close()
    other = asked(path, STATUS)
    assert decode_status(other.receive(time.monotonic() + ANSWER_S)).supervisors == 0
    other.close()
