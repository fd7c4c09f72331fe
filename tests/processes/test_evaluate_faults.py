"""Whole evaluations that fail: the fault is named, attributed and soon over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.processes.evaluations import (
    LIMITS,
    RIGHT,
    TWICE,
    bench,
    request,
)
from tilewright.errors import InfrastructureError, ProblemError
from tilewright.evaluator.pipeline.run import evaluate
from tilewright.evaluator.processes import host
from tilewright.records import Baseline, EvalRequest, Failed

__all__ = ["bench"]

EAGER = (Baseline(name="eager", kind="eager"),)
SHORT = LIMITS.model_copy(update={"load_s": 1.5, "call_timeout_s": 1.5, "exit_s": 1.0})
WORK = "def work(x):\n    "
CLOSES = "import os\nfor fd in range(3, 64):\n    try: os.close(fd)\n    except OSError: 0\n"


def constructor(statement: str) -> str:
    """Return a candidate whose import succeeds and whose constructor runs a statement."""
    return f"class work:\n    def __init__(self):\n        {statement}\n"


def asked(source: str) -> EvalRequest:
    """Return a request for source that need not define an entry point."""
    plain = request(RIGHT, limits=SHORT)
    files = (plain.candidate.files[0].model_copy(update={"text": source}),)
    candidate = plain.candidate.model_copy(update={"files": files})
    return plain.model_copy(update={"candidate": candidate})


@pytest.mark.parametrize(
    ("source", "stage", "reason"),
    [
        ("import nothing_of_this_name\n" + RIGHT, "load", "exception"),
        (RIGHT.replace("work(", "job("), "build", "missing_entry"),
        ("import os\nos._exit(0)\n" + RIGHT, "load", "unexpected_exit"),
        ("raise SystemExit\n" + RIGHT, "load", "unexpected_exit"),
        ("while True: 0\n" + RIGHT, "load", "timeout"),
        (constructor("raise RuntimeError('lost')"), "construct", "exception"),
        (constructor("import os; os._exit(0)"), "construct", "unexpected_exit"),
        (constructor("while True: 0"), "construct", "timeout"),
        (WORK + "raise KeyError('lost')\n", "correctness", "exception"),
        (WORK + "import os; os._exit(7)\n", "correctness", "unexpected_exit"),
        (WORK + "import os, signal; os.kill(os.getpid(), 9)\n", "correctness", "crash"),
        (WORK + "import os, signal; os.kill(os.getpid(), 40)\n", "correctness", "crash"),
        (WORK + "import ctypes; ctypes.string_at(0)\n", "correctness", "crash"),
        (WORK + "while True: 0\n", "correctness", "timeout"),
        (WORK + "return bytearray(1 << 36)\n", "correctness", "out_of_memory"),
        (WORK + "import torch; return torch.empty(1 << 40)\n", "correctness", "out_of_memory"),
        (CLOSES + RIGHT, "load", "unexpected_exit"),
    ],
)
def test_a_fault_is_named_with_its_stage(bench, source, stage, reason):
    start = time.monotonic()
    report = bench.judge(asked(source))

    assert isinstance(report.outcome, Failed), report.outcome
    assert (report.outcome.stage, report.outcome.reason) == (stage, reason), report.outcome
    assert time.monotonic() - start < 30
    assert report.verdict == "failed"


def test_an_exception_shows_the_candidates_own_lines(bench):
    report = bench.judge(request("def work(x):\n    return deep(x)\ndef deep(x):\n    return y\n"))

    assert "NameError: name 'y' is not defined" in report.outcome.message
    assert "candidate.py:4 in deep: return y" in report.outcome.message


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        ("b'garbage that is no frame at all' * 100", "protocol_violation"),
        ("frame({'kind': 'result', 'outputs': [], 'launches': -1})", "protocol_violation"),
        ("frame({'kind': 'verdict', 'verdict': 'correct'})", "protocol_violation"),
        ("frame({'kind': 'error', 'type': 'E'})", "protocol_violation"),
        ("struct.pack('>I', 1 << 31)", "protocol_violation"),
    ],
)
def test_forged_frames_are_a_fault_of_the_candidate(bench, frames, reason):
    source = f"""
import json, os, stat, struct

def frame(fields):
    header = json.dumps({{"body": 0, **fields}}).encode()
    return struct.pack(">I", len(header)) + header

def work(x):
    for fd in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                os.write(fd, {frames})
        except OSError:
            pass
    return x.tanh() * 2
"""
    report = bench.judge(request(source, limits=SHORT))

    assert isinstance(report.outcome, Failed)
    assert (report.outcome.stage, report.outcome.reason) == ("correctness", reason)


def test_memory_outside_the_heap_is_bounded(bench):
    source = (
        WORK
        + "import mmap; global k; k = mmap.mmap(-1, 3 << 30)\n"
        + ("    import time\n    for at in range(0, 3 << 30, 4096): k[at] = 1\n    time.sleep(9)\n")
    )
    limits = LIMITS.model_copy(update={"memory_bytes": 256 << 20})
    report = bench.judge(request(source, limits=limits))

    assert isinstance(report.outcome, Failed)
    assert report.outcome.reason == "out_of_memory"


def test_the_whole_evaluation_has_a_deadline(bench):
    limits = LIMITS.model_copy(update={"total_timeout_s": 1.5})
    slow = WORK + "import time; time.sleep(0.4); return x.tanh() * 2\n"
    report = bench.judge(request(slow, limits=limits))

    assert isinstance(report.outcome, Failed)
    assert "the whole evaluation took longer than 1.5 s" in report.outcome.message


@pytest.mark.parametrize(
    ("exit_code", "verdict"),
    [
        ("import time; time.sleep(60)", "correct"),
        ("import os; os.kill(os.getpid(), 11)", "failed"),
        ("import os; os._exit(3)", "correct"),
    ],
)
def test_crashes_and_delays_at_exit_are_reported(bench, exit_code, verdict):
    source = f"import atexit\ndef leave():\n    {exit_code}\natexit.register(leave)\n{RIGHT}"
    report = bench.judge(request(source, limits=SHORT))

    assert report.verdict == verdict
    if verdict == "failed":
        assert report.outcome.reason == "memory_corruption"
    assert ("exit_timeout" in [item.name for item in report.labels]) == ("sleep" in exit_code)


def test_printing_is_kept_up_to_its_limit(bench):
    source = f"print('y' * 100)\nprint('z' * 10_000_000)\n{RIGHT}"
    limits = LIMITS.model_copy(update={"stdout_bytes": 2000})
    report = bench.judge(request(source, limits=limits))

    assert report.verdict == "correct", report.outcome
    assert report.candidate_output == "y" * 100 + "\n" + "z" * 1899


def test_a_judge_that_dies_is_replaced_and_the_evaluation_repeated(bench):
    killed: list[int] = []

    def kill_the_judge(event, _):
        if event == "sample" and not killed:
            killed.append(bench.inits()[0])
            os.kill(killed[0], signal.SIGKILL)

    bench.judge(request(RIGHT))
    report = bench.judge(request(RIGHT), emit=kill_the_judge)

    assert report.verdict == "correct"
    assert len(bench.named("retry")) == 1
    assert "the judge was lost" in bench.named("retry")[0]["because"]


def test_a_judge_that_dies_twice_is_an_infrastructure_error(bench):
    # It is the problem's code that kills it, in a way that nothing can report. The check of a new
    # problem is the first to run that code.
    deadly = TWICE.replace("def inputs", "import os\n\ndef inputs").replace(
        "torch.tanh(x) * 2", "os._exit(0) if x.numel() else x"
    )
    with pytest.raises(InfrastructureError, match="the judge was lost at 'check_health'"):
        bench.judge(request(RIGHT, deadly))

    assert len(bench.named("retry")) == 1
    assert bench.judge(request(RIGHT)).verdict == "correct"


def test_a_forkserver_that_dies_is_started_again(bench):
    bench.judge(request(RIGHT))
    starts = bench.host.forkserver.starts
    os.kill(bench.host.forkserver.pid, signal.SIGKILL)
    report = bench.judge(request(RIGHT))

    assert report.verdict == "correct"
    assert bench.host.forkserver.starts == starts + 1


def test_an_exception_of_the_client_ends_every_process(bench):
    class Gone(Exception):
        pass

    stages: list[object] = []

    def leave() -> None:
        if "correctness" in stages:
            raise Gone

    def note(_: str, fields: dict[str, object]) -> None:
        stages.append(fields.get("stage"))

    slow = WORK + "import time; time.sleep(5); return x\n"
    with pytest.raises(Gone):
        evaluate(bench.host, request(slow), note, leave)

    assert bench.inits() == []


def test_an_evaluation_waits_for_the_device_and_reports_it(bench, monkeypatch):
    monkeypatch.setattr(host, "LEASE_NOTICE_S", 0.2)
    name = "cpu-" + "-".join(str(core) for core in bench.host.cores.runners)
    lock = Path("/tmp") / f"tilewright-leases-{os.getuid()}" / f"{name}.lock"
    bench.judge(request(RIGHT))
    hold = (
        "import fcntl, sys, time\nfile = open(sys.argv[1], 'a')\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\nprint('held', flush=True)\ntime.sleep(1.0)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(lock)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        report = bench.judge(request(RIGHT))

    assert report.verdict == "correct"
    assert name in bench.named("waiting")[0]["message"]


def test_a_problem_of_too_many_values_does_not_fail_the_candidate(bench):
    many = TWICE.replace("generator=generator),)", "generator=generator), list(range(60000)))")
    many = many.replace("reference(x)", "reference(x, many)")

    with pytest.raises(ProblemError, match="more tensors or values than a frame can name"):
        bench.judge(request(RIGHT.replace("work(x)", "work(x, many)"), many))


def test_threads_of_the_calling_process_do_not_prevent_an_evaluation(bench):
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert bench.judge(request(RIGHT)).verdict == "correct"
    finally:
        stop.set()
        thread.join()


def test_an_ended_child_can_be_killed_again_and_retired(bench):
    child = bench.host.spawn("runner", LIMITS)
    child.wait_ready()
    child.kill()
    # Who held too much memory is killed at once, and met again when its evaluation is closed.
    child.kill_async()
    child.kill()
    assert child.closed
    assert not child.alive()
