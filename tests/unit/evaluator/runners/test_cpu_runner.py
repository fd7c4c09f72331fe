"""One runner: when it is frozen, when it times out, and which CPU time it is charged.

`python -m benchmarks --only planted_bugs` plants bugs that these tests must find.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.in_process_evaluator import InProcessEvaluator, ThreadChild
from tilewright.evaluator.runners import cpu_runner
from tilewright.evaluator.runners.call_limit import CallLimit
from tilewright.evaluator.runners.cpu_accounting import MAX_EMPTY_CALL_S, MIN_CALL_S
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.messages import (
    Addresses,
    EvaluationEnded,
    Mapped,
    OutputReport,
    read,
)
from tilewright.records import Limits
from tilewright.wire import sync_page
from tilewright.wire.frames import Channel, Frame, FrameError

LOAD = {
    "loader": "python", "entry": "work", "keywords": [],
    "mode": "eval", "init_seed": 1, "init": {"t": "tuple", "v": []}, "init_bytes": 0,
    "artifacts": {},
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

    def opening(
        source: str, *, threads: int = 1, held_seed: int = 0, **limits: Any
    ) -> tuple[Runner, ThreadChild]:
        child = evaluator.spawn("runner", Limits())
        child.wait_ready()
        given = (float("inf"), threads, held_seed)
        runner = Runner("candidate", child, Limits(**limits), lambda: None, *given)
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


def test_inputs_arrive_and_outputs_are_read_while_the_runner_is_stopped(opened):
    runner, child = opened("def work():\n    return ()\n")
    for number in (1, 2):
        seen: list[tuple[str, list[bool]]] = []

        def look(what: str, number: int = number, seen: Any = seen) -> bool:
            flags = runner.page.flags
            words = (sync_page.READY, sync_page.GO, sync_page.DONE)
            seen.append((what, [flags[word] == number for word in words]))
            child.signals.append(what)
            return True

        child.signals.clear()
        runner.timed_call(CALL, lambda look=look: look("write"), lambda _, look=look: look("read"))
        assert child.signals == ["freeze", "write", "resume", "freeze", "read", "resume"]
        assert seen == [("write", [True, False, False]), ("read", [True, True, True])]


def test_a_runner_whose_inputs_cannot_be_written_is_ended(opened):
    runner, _ = opened("def work():\n    return ()\n", call_timeout_s=0.5)
    with pytest.raises(EvaluationEnded) as ended:
        runner.timed_call(CALL, lambda: False)
    assert ended.value.outcome.reason == "protocol_violation"
    assert ended.value.outcome.message == "its inputs cannot be written any more"
    assert runner.page.flags[sync_page.GO] == 0


def test_a_runner_whose_other_processes_live_on_is_not_timed(opened):
    runner, child = opened("def work():\n    return ()\n")
    runner.forbid_processes()
    child.companions = 1
    with pytest.raises(EvaluationEnded) as ended:
        runner.forbid_processes()
    assert (ended.value.outcome.reason, ended.value.runner) == ("timeout", "candidate")
    assert "its other processes were not gone" in ended.value.outcome.message


def test_output_addresses_are_reported_with_the_completion_timestamp(opened):
    source = "import torch\n\n\ndef work():\n    return torch.ones(3), torch.ones(2), '5'\n"
    runner, _ = opened(source)
    seen: list[list[int]] = []
    look = lambda _: seen.append(runner.reported_outputs(3).addresses)  # noqa: E731
    timed = runner.timed_call(CALL, finish=look)

    first, second, _ = (item.address for item in timed.result.outputs)
    assert seen == [[first, second, 0]]
    assert first != second


@pytest.mark.parametrize("threads", [1, 2])
def test_cpu_time_between_calls_is_not_that_of_a_call(opened, threads):
    runner, child = opened("def work():\n    return ()\n", threads=threads)
    runner.timed_call(CALL)
    child.cpu += 5.0
    child.burns = 3.0
    timed = runner.timed_call(CALL)

    assert timed.untimed_cpu_s == pytest.approx(5.0)
    # Several threads work at the same time, so that their call lasts as a clock shows it.
    assert timed.total_s == pytest.approx(3.0) if threads == 1 else timed.total_s < 1.0
    assert runner.timed_call(CALL).untimed_cpu_s == pytest.approx(0.0)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("while_stopped", ["inputs", "outputs"])
def test_cpu_time_used_while_stopped_is_charged_to_the_call(opened, threads, while_stopped):
    def work(_: int = 0) -> bool:
        child.cpu += 2.0
        return True

    runner, child = opened("def work():\n    return ()\n", threads=threads)
    runner.timed_call(CALL)
    if while_stopped == "outputs":
        timed = runner.timed_call(CALL, finish=work)
    elif threads == 1:
        timed = runner.timed_call(CALL, work)
    else:
        return
    assert timed.total_s == pytest.approx(2.0, abs=0.5)
    assert runner.timed_call(CALL).untimed_cpu_s == pytest.approx(0.0)


def test_a_runner_that_sleeps_is_charged_and_one_that_waits_for_its_core_is_not(
    opened, monkeypatch
):
    own = [0.0]
    monkeypatch.setattr(cpu_runner, "own_waited_s", lambda: own[0])

    def wait(seconds: float) -> bool:
        child.waited += seconds
        return True

    runner, child = opened(SLEEP.format(0.05))
    runner.timed_call(CALL)
    assert 0.04 < runner.timed_call(CALL, lambda: wait(0.0)).total_s < 1.0
    assert runner.timed_call(CALL, lambda: wait(1.0)).total_s == MIN_CALL_S

    def busy() -> bool:
        own[0] += 1.0
        return True

    # A supervisor that waits for its own core notices completion late.
    assert runner.timed_call(CALL, busy).total_s == MIN_CALL_S


def test_a_call_is_less_an_empty_one_but_never_by_much(opened):
    runner, child = opened("def work():\n    return ()\n")
    child.burns = 1.0
    for empty_s, credit_s in ((2e-6, 2e-6), (0.5, MAX_EMPTY_CALL_S)):
        runner.empty_call_s = empty_s
        assert runner.timed_call(CALL).total_s == pytest.approx(1.0 - credit_s, abs=1e-9)


def test_callers_hold_few_outputs_of_secret_calls_and_some_for_long(opened):
    runner, child = opened("def work():\n    return ()\n")
    runner.max_held = 6
    for _ in range(60):
        runner.timed_call(CALL)
    sent = [fields for kind, fields in child.channel.sent if kind == "arm"]
    told = [fields["held"] for fields in sent]
    numbers = [fields["sequence"] for fields in sent]

    assert told[0] == []
    assert {len(held) for held in told[6:]} == {2, 3, 4, 5, 6}
    for number, held in zip(numbers[1:], told[1:], strict=True):
        assert held[-1] == number - 1
        assert held == sorted(set(held))
    # A ring of six buffers is used again while an older output is held.
    oldest = [number - held[0] for number, held in zip(numbers[1:], told[1:], strict=True)]
    assert max(oldest) > 6
    # A dropped output never comes back.
    for before, after in itertools.pairwise(told):
        assert set(after[:-1]) <= set(before)


def test_all_runners_of_an_evaluation_hold_the_same_calls(opened):
    told = []
    for seed in (1, 1, 2):
        runner, _ = opened("def work():\n    return ()\n", held_seed=seed)
        runner.max_held = 6
        held = []
        for _ in range(20):
            runner.timed_call(CALL)
            held.append(list(runner.held))
        told.append(held)
    assert told[0] == told[1]
    assert told[0] != told[2]


def test_a_runner_that_runs_while_stopped_is_ended(opened):
    runner, child = opened("def work():\n    return ()\n")
    child.stands_still = False
    with pytest.raises(EvaluationEnded) as ended:
        runner.timed_call(CALL)
    assert ended.value.outcome.reason == "protocol_violation"
    assert ended.value.outcome.message == "it ran while it was stopped"


def test_a_runner_that_does_not_stop_is_ended_without_inputs(opened):
    runner, child = opened("def work():\n    return ()\n", call_timeout_s=0.5)
    child.stoppable = False
    with pytest.raises(EvaluationEnded) as ended:
        runner.timed_call(CALL, lambda: pytest.fail("it may still run"))
    assert ended.value.outcome.reason == "timeout"
    assert "SIGSTOP did not stop it" in ended.value.outcome.message
    assert ended.value.repeatable, "a busy machine may be the cause"


def test_a_silent_runner_times_out(opened):
    runner, child = opened(SLEEP.format(1), call_timeout_s=0.3)

    for ask in (lambda: runner.ask("call", CALL), lambda: runner.timed_call(CALL)):
        with pytest.raises(EvaluationEnded) as ended:
            ask()
        assert ended.value.outcome.reason == "timeout"
        assert runner.page.let_go_on()
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
    tree = SimpleNamespace(
        cpu_s=lambda: 0.0,
        payload_hides=lambda: False,
        payload_is_runnable=lambda: False,
    )
    memory = SimpleNamespace(excess=lambda _: None)
    child: Any = SimpleNamespace(
        channel=Channel(ours), tree=tree, memory=memory, kill=ours.close, closed=False
    )
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


def test_the_first_report_of_address_and_memory_is_final():
    runner, peer = connected()
    taken = []
    for address, inputs in ((1 << 20, 4096), (1 << 30, 8192)):
        memory = os.memfd_create(f"memory {address}")
        peer.send("mapped", {"base": address}, fds=(memory, memory, memory))
        os.close(memory)
        fds = runner.reserve_inputs(inputs)
        taken.append([os.readlink(f"/proc/self/fd/{fd}").split(" (")[0] for fd in fds])
        sent = peer.receive()
        assert sent.fields == {"inputs": inputs}
        for fd in (*fds, *sent.fds):
            os.close(fd)
        assert runner.base == 1 << 20

    assert taken == [[f"/memfd:memory {1 << 20}"] * 3, []]
    runner.close()
    peer.close()


@pytest.mark.parametrize(
    ("sent", "stage", "reason"),
    [
        (("error",), "load", "exception"),
        (("constructing", "error"), "construct", "exception"),
        (("constructing", "constructing"), "construct", "protocol_violation"),
        (("loaded", "constructing"), None, None),
        (("constructing", "loaded"), None, None),
    ],
)
def test_a_failure_after_the_import_has_a_stage_of_its_own(sent, stage, reason):
    runner, peer = connected()
    error = {"during": "load", "type": "E", "message": "m", "traceback": []}
    for kind in ("entering", *sent):
        peer.send(kind, error if kind == "error" else {})
    if stage is None:
        runner.load(LOAD, b"")
        assert runner.stage == "load"
    else:
        with pytest.raises(EvaluationEnded) as ended:
            runner.load(LOAD, b"")
        assert (ended.value.outcome.stage, ended.value.outcome.reason) == (stage, reason)
    runner.close()
    peer.close()


def test_a_runner_that_hides_its_memory_has_failed():
    runner, peer = connected()
    runner.entered = True
    peer.send("mapped", {"base": 1 << 20}, fds=(peer.fileno(),))
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(EvaluationEnded) as ended:
        runner.reserve_inputs(4096)
    assert ended.value.outcome.message == "it sent no descriptors of its memory"
    assert len(os.listdir("/proc/self/fd")) == before
    runner.close()
    peer.close()


def test_a_supervisor_without_a_core_of_its_own_sleeps_while_its_runner_works():
    runner, peer = connected()
    runner.page.share_core()
    done = threading.Timer(0.4, lambda: runner.page.flags.__setitem__(sync_page.DONE, 1))
    done.start()
    used_s = time.thread_time()
    runner._spin(sync_page.DONE, 1, CallLimit(runner.child.tree, 20.0))
    assert time.thread_time() - used_s < 0.2
    done.join()
    runner.close()
    peer.close()


def test_a_runner_that_fills_or_closes_its_pipe_cannot_block_the_supervisor():
    runner, peer = connected()
    assert runner.page.let_go_on()
    writer = os.open(f"/proc/self/fd/{runner.page.go_on}", os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while os.write(writer, bytes(4096)):
            continue
    with contextlib.suppress(BlockingIOError):
        while os.write(writer, bytes(1)):
            continue
    # The flags of one end are not those of the other one.
    os.set_blocking(runner.page.go_on, True)
    os.set_blocking(writer, True)
    assert not runner.page.let_go_on()
    os.close(writer)
    os.dup2(os.open("/dev/null", os.O_RDONLY), runner.page.go_on)
    assert not runner.page.let_go_on()
    runner.close()
    peer.close()
