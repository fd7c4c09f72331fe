"""Descriptors in the queues of sockets: each queue is read once."""

from __future__ import annotations

import itertools
import os
import socket
from contextlib import closing

from tilewright.evaluator.processes.queued_descriptors import peek


def kinds(sock: socket.socket) -> list[str]:
    """Return what lies in the queue of a socket, and in those of the sockets there."""
    with closing(peek(os.dup(sock.fileno()))) as found:
        return [os.readlink(f"/proc/self/fd/{each}").partition(":")[0] for each in found]


def test_a_socket_in_its_own_queue_is_read_once():
    sender, receiver = socket.socketpair()
    with sender, receiver:
        for _ in range(20):
            socket.send_fds(sender, [b"x"], [receiver.fileno()])
        assert kinds(receiver) == ["socket"] * 20


def test_a_file_in_the_queue_of_a_queued_socket_is_found():
    pairs = [socket.socketpair() for _ in range(3)]
    memory = os.memfd_create("held")
    for (sender, _), (_, inner) in itertools.pairwise(pairs):
        socket.send_fds(sender, [b"x"], [inner.fileno()])
    socket.send_fds(pairs[-1][0], [b"x"], [memory])
    os.close(memory)
    found = kinds(pairs[0][1])
    assert found[:2] == ["socket", "socket"]
    assert found[2].startswith("/memfd")
    for pair in pairs:
        for sock in pair:
            sock.close()
