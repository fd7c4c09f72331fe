"""Device memory that supervisors keep: who sees it, who releases it, and what a dead one leaves."""

from __future__ import annotations

import math
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tilewright.errors import InfrastructureError
from tilewright.evaluator.client_requests import Served
from tilewright.evaluator.devices.devices import Device
from tilewright.evaluator.pipeline import memory_admission
from tilewright.evaluator.pipeline.memory_admission import end_all_idle
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.processes.memory_ledger import MemoryLedger
from tilewright.evaluator.processes.prefork import lease_folder

OWNER = """
import sys, time
from tilewright.evaluator.processes.memory_ledger import MemoryLedger

ledger = MemoryLedger(sys.argv[1])
ledger.publish(int(sys.argv[2]))
print(ledger.name, flush=True)
while True:
    if sys.argv[3] == "answers" and ledger.release_requested:
        ledger.answer()
    time.sleep(0.005)
"""
SUPERVISOR = """
import math, socket, subprocess, sys
from pathlib import Path
from types import SimpleNamespace
from tilewright.evaluator import client_requests
from tilewright.evaluator.devices.devices import Device
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.processes.idle import IdleJudge, RunnerCache

sleeping = subprocess.Popen(["sleep", "60"])

def kill():
    sleeping.kill()
    sleeping.wait()

host = DeviceHost(Path(sys.argv[1]), Device("cuda:0", "no GPU", uuid=sys.argv[2]))
host.idle_judges["one"] = IdleJudge(SimpleNamespace(kill=kill), RunnerCache(), 5 << 30)
host._publish()
print(host.ledger.name, sleeping.pid, flush=True)
if sys.argv[3] == "idle":
    ours, theirs = socket.socketpair()
    served = client_requests.Served(Path(sys.argv[1]), [0], math.inf, hosts={"cuda:0": host})
    client_requests.serve(served, ours.detach())
with host.lease(lambda _: None, lambda: None):
    print("leased", len(host.idle_judges), host.held_bytes, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def lease() -> Iterator[str]:
    name = f"test-{os.getpid()}-{secrets.token_hex(4)}"
    yield name
    shutil.rmtree(lease_folder() / f"{name}.memory", ignore_errors=True)


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start programs that end with the test."""
    running: list[subprocess.Popen[str]] = []

    def start(program: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", program, *arguments]
        pipe = subprocess.PIPE
        running.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    return process.stdout.readline().split()


def test_an_entry_is_seen_by_others_and_vanishes_with_its_process(lease, started):
    ours = MemoryLedger(lease)
    ours.publish(7)
    assert ours.others() == {}
    first, second = (started(OWNER, lease, size, "answers") for size in ("11", "22"))
    (one,), (two,) = said(first), said(second)

    assert ours.others() == {one: 11, two: 22}
    first.kill()
    first.wait()
    assert ours.others() == {two: 22}
    with_dead = MemoryLedger(lease)
    assert with_dead.others() == {two: 22, ours.name: 7}
    ours.close()
    assert with_dead.others() == {two: 22}
    with_dead.close()


def test_who_is_asked_releases_and_who_is_not_keeps(lease, started):
    ours = MemoryLedger(lease)
    (one,), (two,) = (said(started(OWNER, lease, "11", "answers")) for _ in range(2))

    assert ours.request_release([one], 10.0, lambda: None) == []
    assert ours.others() == {one: 0, two: 11}
    ours.close()


def test_a_process_that_ends_instead_of_answering_is_not_waited_for(lease, started):
    ours = MemoryLedger(lease)
    silent = started(OWNER, lease, "11", "is silent")
    (name,) = said(silent)
    began = time.monotonic()

    assert ours.request_release([name], 10.0, silent.kill) == []
    assert time.monotonic() - began < 5
    assert ours.others() == {}
    ours.close()


def test_a_silent_process_is_named_and_asked_no_longer(lease, started):
    ours, watched = MemoryLedger(lease), list[int]()
    silent = started(OWNER, lease, "11", "is silent")
    (name,) = said(silent)

    assert ours.request_release([name], 0.1, lambda: watched.append(1)) == [name]
    assert watched
    assert not (ours._folder / f"{name}.asked").exists()
    assert ours.others() == {name: 11}
    ours.close()


class ClientGone(Exception):
    pass


def leave() -> None:
    raise ClientGone


def test_a_client_that_goes_ends_the_wait_and_the_question(lease, started):
    ours = MemoryLedger(lease)
    (name,) = said(started(OWNER, lease, "11", "is silent"))

    with pytest.raises(ClientGone):
        ours.request_release([name], 10.0, leave)
    assert not (ours._folder / f"{name}.asked").exists()
    ours.close()


@pytest.fixture
def host(tmp_path, lease) -> Iterator[DeviceHost]:
    cores = os.sched_getaffinity(0)
    made = DeviceHost(tmp_path, Device("cuda:0", "no GPU", uuid=lease))
    yield made
    made.close()
    os.sched_setaffinity(0, cores)


def releases_memory(host: DeviceHost, other: subprocess.Popen[str]) -> None:
    """Ask another supervisor for the memory of its idle judge, which ends."""
    name, judge = said(other)
    assert host.ledger is not None
    assert host.ledger.others() == {name: 5 << 30}
    assert host.shares_memory
    assert os.path.exists(f"/proc/{judge}")
    end_all_idle(host, lambda: None)
    assert not os.path.exists(f"/proc/{judge}")
    assert host.ledger.others() == {name: 0}
    assert not host.shares_memory
    assert other.poll() is None


def test_a_supervisor_without_a_request_releases_to_the_holder(host, lease, tmp_path, started):
    with host.lease(print, lambda: None):
        releases_memory(host, started(SUPERVISOR, str(tmp_path), lease, "idle"))


def test_a_supervisor_that_waits_for_the_lease_releases_to_its_holder(
    host, lease, tmp_path, started
):
    with host.lease(print, lambda: None):
        assert not host.shares_memory
        other = started(SUPERVISOR, str(tmp_path), lease, "waits")
        releases_memory(host, other)
    # It got the lease, which it had waited for.
    assert said(other) == ["leased", "0", "0"]
    other.kill()
    other.wait()
    with host.lease(print, lambda: None):
        assert host.ledger.others() == {}


def test_an_evaluation_that_must_be_alone_has_no_verdict_beside_a_silent_one(
    host, lease, started, monkeypatch
):
    monkeypatch.setattr(memory_admission, "ALONE_S", 0.1)
    silent = started(OWNER, lease, "11", "is silent")
    said(silent)

    with host.lease(print, lambda: None):
        with pytest.raises(InfrastructureError, match=f"kept theirs .*{silent.pid}"):
            end_all_idle(host, lambda: None)
        assert host.shares_memory


def test_a_supervisor_that_waits_for_room_answers_for_its_other_devices(host, lease, tmp_path):
    # Two supervisors of two devices each, of which each waits for the other, must both go on.
    other = DeviceHost(tmp_path, Device("cuda:1", "no GPU", uuid=f"{lease}-other"))
    first, second = MemoryLedger(lease), MemoryLedger(f"{lease}-other")
    served = Served(tmp_path, [0], math.inf, hosts={"cuda:0": host, "cuda:1": other})

    def request_other() -> list[str]:
        return second.request_release([other.ledger.name], 0.1, served.answer_requests)

    with host.lease(print, lambda: None):
        assert request_other()
        answers = list[list[str]]()
        assert host.request_release([first.name], 0.3, lambda: answers.append(request_other())) == [
            first.name
        ]
        assert answers[0] == []
    assert request_other() == []
    for ledger in (first, second):
        ledger.close()
    other.close()
    shutil.rmtree(lease_folder() / f"{lease}-other.memory")


def test_a_holder_of_the_lease_answers_after_it(host, lease):
    asking = MemoryLedger(lease)
    with host.lease(print, lambda: None):
        assert asking.request_release([host.ledger.name], 0.1, host.answer_request)
    assert asking.request_release([host.ledger.name], 5.0, host.answer_request) == []
    asking.close()
