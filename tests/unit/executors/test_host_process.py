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
def serving(tmp_path, monkeypatch):
    """Yield the thread of a host that can start no process; its socket is `host.sock`."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    path = tmp_path / "host.sock"
    listener = listen(path)
    inode = path.stat().st_ino
    host = WarmHost(path, listener, inode, home=str(tmp_path), idle_s=60.0, release_s=30.0)
    serving = threading.Thread(target=host.run, daemon=True)
    serving.start()
    yield serving
    if serving.is_alive():
        stopping = asked(tmp_path, STOP)
        stopping.receive(time.monotonic() + ANSWER_S)
        stopping.close()
    serving.join(ANSWER_S)
    host.close()


def asked(folder, kind, **fields) -> Channel:
    channel = connect(folder / "host.sock")
    assert channel is not None
    channel.send(kind, fields)
    return channel


@pytest.mark.usefixtures("serving")
def test_a_process_that_cannot_be_started_costs_one_client_alone(tmp_path):
    client = asked(tmp_path, ATTACH, forkserver={})
    with pytest.raises(ChannelClosed):
        client.receive(time.monotonic() + ANSWER_S)
    client.close()
    other = asked(tmp_path, STATUS)
    assert decode_status(other.receive(time.monotonic() + ANSWER_S)).supervisors == 0
    other.close()


def test_a_host_ends_although_the_one_that_stopped_it_has_gone(serving, tmp_path):
    asked(tmp_path, STOP).close()
    serving.join(ANSWER_S)
    assert not serving.is_alive()
