"""No request gets the answer to another one, whatever ends the exchange before it."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.in_process_evaluator import a_request
from tilewright.errors import InfrastructureError
from tilewright.executors.base import ignore_progress
from tilewright.executors.local import Supervisor
from tilewright.wire.frames import Channel, ChannelClosed

ADD = """import torch
CASES = [{"n": 4}]
def inputs(case, generator):
    return (torch.ones(case["n"]),)
def reference(x):
    return x + 1
"""
REQUEST = a_request(ADD, "def work(x):\n    return x + 1\n")


class Peer:
    """The other ends of the sockets of supervisors, which answer with what they were asked."""

    def __init__(self) -> None:
        self.attached = 0

    def attach(self, _: Any) -> Channel:
        ours, theirs = socket.socketpair()
        self.attached += 1
        threading.Thread(target=self._serve, args=(Channel(theirs),), daemon=True).start()
        return Channel(ours)

    @staticmethod
    def _serve(channel: Channel) -> None:
        channel.send("up", {"pid": os.getpid()})
        try:
            while True:
                number = channel.receive().fields["number"]
                channel.send("event", {"event": "waiting"})
                channel.send("report", {}, str(number).encode())
        except ChannelClosed:
            channel.close()


def ask(supervisor: Supervisor, number: int, progress: Any = ignore_progress) -> int:
    return int(supervisor.call("evaluate", {"number": number}, REQUEST, progress))


def refuse(*_: Any) -> None:
    raise InfrastructureError("the store cannot be read")


def test_an_error_of_a_callback_leaves_no_answer_to_the_next_request(tmp_path: Path):
    peer = Peer()
    supervisor = Supervisor(tmp_path, None, (), peer.attach)
    assert ask(supervisor, 1) == 1
    with pytest.raises(InfrastructureError, match="the store"):
        ask(supervisor, 2, refuse)
    assert [ask(supervisor, 3), ask(supervisor, 4)] == [3, 4]
    assert peer.attached == 2
    supervisor.stop()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_has_no_supervisor_of_its_parent(tmp_path: Path):
    peer = Peer()
    supervisor = Supervisor(tmp_path, None, (), peer.attach)
    assert ask(supervisor, 1) == 1
    child = os.fork()
    if child == 0:
        os._exit(supervisor.pid is not None)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert supervisor.pid is not None
    assert ask(supervisor, 2) == 2
    assert peer.attached == 1
    supervisor.stop()
