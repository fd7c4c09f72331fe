"""One runner: when it is frozen, when it times out, and which CPU time it is charged.

`python -m benchmarks --only planted_bugs` plants bugs that these tests must find.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.in_process_evaluator import InProcessEvaluator, ThreadChild
from tilewright.evaluator.runners.cpu_accounting import cpu_before_release_s
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.messages import (
    Addresses,
    EvaluationEnded,
    Mapped,
    OutputReport,
    read,
)
from tilewright.records import Limits
from tilewright.wire.frames import Channel, Frame, FrameError

LOAD = {
    "loader": "python", "entry": "work", "other_entries": [], "keywords": [],
    "mode": "eval", "init_seed": 1, "init": {"t": "tuple", "v": []}, "artifacts": {},
    "suppressed": False, "import_paths": [], "threads": 1, "compile": None,
}  # fmt: skip
CALL = {
    "base": 0, "size": 256, "args": LOAD["init"], "grads": [], "grad_outputs": LOAD["init"],
    "forward_seed": 1, "expected": [],
}  # fmt: skip
SLEEP = "import time\n\n\ndef work():\n    time.sleep({})\n    return ()\n"
Opened = Callable[..., tuple[Runner, ThreadChild]]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """Load a source into a runner that is a thread."""
    evaluator = InProcessEvaluator(tmp_path, monkeypatch)
    runners: list[Runner] = []

    def opening(source: str, *, threads: int = 1, **limits: Any) -> tuple[Runner, ThreadChild]:
        child = evaluator.spawn("runner", Limits())
        child.wait_ready()
        runner = Runner("candidate", child, Limits(**limits), lambda: None, float("inf"), threads)
        runners.append(runner)
        for fd in runner.reserve_inputs(4096):
            os.close(fd)
        parts = [{"path": "work.py", "size": len(source)}]
        runner.load({**LOAD, "files": parts}, source.encode())
        return runner, child

    yield opening
    evaluator.close()
    for runner in runners:
        runner.page.close()


def test_a_runner_is_frozen_while_its_outputs_are_read(opened):
    runner, child = opened("def work():\n    return ()\n")
    runner.timed_call(CALL, lambda: child.signals.append("read"))

    assert child.signals == ["freeze", "read", "resume"]


def test_a_runner_whose_other_processes_live_on_is_not_timed(opened):
    runner, child = opened("def work():\n    return ()\n")
    runner.forbid_processes()
    child.companions = 1
    with pytest.raises(EvaluationEnded) as ended:
        runner.forbid_processes()
    assert (ended.value.outcome.reason, ended.value.runner) == ("timeout", "candidate")
    assert "its other processes were not gone" in ended.value.outcome.message


def test_output_addresses_are_reported_with_the_completion_timestamp(opened):
    source = "import torch\n\n\ndef work():\n    return torch.ones(3), torch.ones(2), None\n"
    runner, _ = opened(source)
    seen: list[list[int]] = []
    timed = runner.timed_call(CALL, lambda: seen.append(runner.output_addresses(3)))

    first, second, _ = (item.address for item in timed.result.outputs)
    assert seen == [[first, second, 0]]
    assert first != second


@pytest.mark.parametrize("threads", [1, 2])
def test_untimed_cpu_is_all_use_since_the_last_timestamp_except_the_call(opened, threads):
    runner, child = opened(SLEEP.format(0.02), threads=threads)
    child.stops_a_call = threads
    runner.timed_call(CALL)
    child.cpu += 5.0
    child.burns = 3.0
    timed = runner.timed_call(CALL)

    # Other threads used the CPU time that exceeds the capacity of the call's own threads.
    outside = 8.0 - threads * timed.total_s
    # With several threads the time to stop them counts too.
    near = 1e-6 if threads == 1 else 0.1
    assert timed.untimed_cpu_s == pytest.approx(outside, abs=near)
    child.burns = 0.0
    again = runner.timed_call(CALL)
    # CPU time of a call with several threads is not charged to the next call.
    assert again.untimed_cpu_s == pytest.approx(-again.total_s if threads == 1 else 0.0, abs=near)


@pytest.mark.parametrize(
    ("used", "lasted", "awake", "early"),
    [
        (0.020, 0.010, 0.0001, 0.0),  # both threads, all the time
        (0.0202, 0.010, 0.0002, 0.0),  # and the one that waited spun
        (0.0006, 0.0001, 0.0003, 0.0001),  # both worked, and neither waited
        (0.0003, 0.0001, 0.0003, 0.0),
    ],
)
def test_cpu_time_beyond_the_threads_of_a_call_was_used_before_its_release(
    used, lasted, awake, early
):
    assert cpu_before_release_s(used, lasted, awake, 2) == pytest.approx(early, abs=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_cpu_time_used_while_stopped_is_charged(opened, threads):
    def work() -> None:
        child.cpu += 2.0

    runner, child = opened("def work():\n    return ()\n", threads=threads)
    child.stops_a_call = threads
    runner.timed_call(CALL)
    assert runner.timed_call(CALL, work).untimed_cpu_s == pytest.approx(2.0, abs=0.1)


def test_a_runner_that_runs_while_stopped_is_ended(opened):
    runner, child = opened("def work():\n    return ()\n")
    child.stands_still = False
    with pytest.raises(EvaluationEnded) as ended:
        runner.timed_call(CALL)
    child.resume()
    assert ended.value.outcome.reason == "protocol_violation"
    assert ended.value.outcome.message == "it ran while it was stopped"


def test_a_runner_that_does_not_stop_is_ended(opened):
    runner, child = opened("def work():\n    return ()\n")
    child.stoppable = False
    with pytest.raises(EvaluationEnded) as ended:
        runner.timed_call(CALL)
    child.resume()
    assert ended.value.outcome.reason == "timeout"
    assert "did not stand still" in ended.value.outcome.message


def test_a_silent_runner_times_out(opened):
    runner, child = opened(SLEEP.format(1), call_timeout_s=0.3)

    for ask in (lambda: runner.ask("call", CALL), lambda: runner.timed_call(CALL)):
        with pytest.raises(EvaluationEnded) as ended:
            ask()
        assert ended.value.outcome.reason == "timeout"
        child.tree.resume()
        child.channel.receive()


@pytest.mark.parametrize("address", [-1, 1 << 57, 1 << 64, 1 << 80, 4096.0, "4096"])
@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (OutputReport, lambda address: {"type": "tensor", "address": address}),
        (Mapped, lambda address: {"base": address}),
        (Addresses, lambda address: {"addresses": [4096, address]}),
    ],
)
def test_an_address_outside_user_memory_is_refused(model, fields, address):
    assert read(Frame("said", fields(4096)), model)
    assert read(Frame("said", fields((1 << 57) - 1)), model)
    with pytest.raises(FrameError):
        read(Frame("said", fields(address)), model)


def connected() -> tuple[Runner, Channel]:
    """Return a runner without a process, and the other end of its channel."""
    ours, theirs = socket.socketpair()
    tree = SimpleNamespace(cpu_s=lambda: 0.0)
    memory = SimpleNamespace(excess=lambda _: None)
    child: Any = SimpleNamespace(channel=Channel(ours), tree=tree, memory=memory, kill=ours.close)
    runner = Runner("candidate", child, Limits(), lambda: None, float("inf"), 1)
    return runner, Channel(theirs)


def test_an_error_in_place_of_memory_leaves_no_descriptor():
    runner, peer = connected()
    runner.entered = True
    fields = {"during": "call", "type": "E", "message": "m", "traceback": []}
    peer.send("error", fields, fds=(peer.fileno(), peer.fileno()))
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(EvaluationEnded):
        runner.reserve_inputs(4096)
    assert len(os.listdir("/proc/self/fd")) == before
    runner.close()
    peer.close()


def test_the_first_report_of_input_copy_and_memory_is_final():
    runner, peer = connected()
    taken = []
    for input_copy, inputs in ((1 << 20, 4096), (1 << 30, 8192)):
        memory = os.memfd_create(f"memory {input_copy}")
        peer.send("mapped", {"base": input_copy}, fds=(memory,))
        os.close(memory)
        fds = runner.reserve_inputs(inputs)
        taken.append([os.readlink(f"/proc/self/fd/{fd}").split(" (")[0] for fd in fds])
        for fd in (*fds, *peer.receive().fds):
            os.close(fd)
        assert runner.base == 1 << 20

    assert taken == [["/memfd:inputs", f"/memfd:memory {1 << 20}"], ["/memfd:inputs"]]
    runner.close()
    peer.close()
