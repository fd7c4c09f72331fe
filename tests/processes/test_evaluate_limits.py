"""Whole evaluations at a limit: hidden memory, an exit that hangs, and loops at import."""

from __future__ import annotations

import ctypes
import os
import platform
import time
from pathlib import Path

import pytest

from tests.processes.evaluations import LIMITS, RIGHT, TIMED, bench, request
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.records import Failed

__all__ = ["bench"]

SMALL = LIMITS.model_copy(update={"memory_bytes": 256 << 20})
FILES = """
import os, socket, time
def work(x):
    block = bytes(1 << 26)
    global kept
    kept = []
    for _ in range(3):
        fd = os.memfd_create("held")
        for _ in range(10):
            os.write(fd, block)
        hold(fd)
    time.sleep(9)
    return x.tanh() * 2
"""
HELD = FILES + "def hold(fd):\n    kept.append(fd)\n"
SENT = FILES + (
    "def hold(fd):\n    pair = socket.socketpair()\n    socket.send_fds(pair[0], [b'.'], [fd])\n"
    "    os.close(fd)\n    kept.append(pair)\n"
)
AT_EXIT = "import atexit\ndef leave():\n    {}\natexit.register(leave)\n" + RIGHT
HANGS = {
    "a loop in a handler": AT_EXIT.format("while True: 0"),
    "a loop in a destructor": "class Last:\n    def __del__(self):\n        while True: 0\n"
    "last = Last()\n" + RIGHT,
    "a thread that goes on": AT_EXIT.format(
        "import threading, time; t = threading.Thread(target=time.sleep, args=(60,)); "
        "t.start(); t.join()"
    ),
    "signals ignored": AT_EXIT.format(
        "import signal, time\n    for n in (1, 2, 3, 15): signal.signal(n, signal.SIG_IGN)\n"
        "    time.sleep(60)"
    ),
    "a child that holds the channel": AT_EXIT.format(
        "import os, time\n    if os.fork() == 0: time.sleep(60)\n    time.sleep(60)"
    ),
    "processes without end": AT_EXIT.format(
        "import os\n    while True:\n        try: os.fork()\n        except OSError: 0"
    ),
    "bytes one by one": AT_EXIT.format(
        "import os, stat, time\n    while True:\n        time.sleep(0.01)\n"
        "        for fd in range(3, 16):\n            try:\n"
        "                if stat.S_ISSOCK(os.fstat(fd).st_mode): os.write(fd, b'\\0')\n"
        "            except OSError: 0"
    ),
}


@pytest.mark.parametrize("source", [HELD, SENT], ids=["held", "in a socket"])
def test_memory_in_files_without_a_name_is_bounded(bench, source):
    report = bench.judge(request(source, limits=SMALL))

    assert isinstance(report.outcome, Failed), report.outcome
    assert report.outcome.reason == "out_of_memory", report.outcome


@pytest.mark.alone
@pytest.mark.parametrize("hang", HANGS)
def test_a_hang_at_exit_costs_at_most_three_seconds(bench, hang):
    """Whatever the settings say: the next evaluation begins by then."""
    limits = LIMITS.model_copy(update={"exit_s": 60.0})
    report = bench.judge(request(HANGS[hang], limits=limits))
    stages = {item.name: item.wall_s for item in report.stages}

    # The rest of an evaluation takes a tenth of a second, and more on a busy machine.
    assert stages["shutdown"] + stages["cleanup"] < 3.0
    assert report.verdict == "correct", report.outcome
    assert "exit_timeout" in [item.name for item in report.labels]
    assert bench.judge(request(RIGHT)).verdict == "correct"


def test_the_next_evaluation_does_not_wait_for_a_process_that_cannot_end(bench, monkeypatch):
    """A traced process stays in the kernel's tables until its tracer has noticed its end."""
    traced: list[int] = []
    libc = ctypes.CDLL(None, use_errno=True)
    shut = EvaluationSession._close

    def trace_and_close(session: EvaluationSession) -> None:
        payload = session.runners.runners["candidate"].child.tree.pids[0]
        if libc.ptrace(0x4206, payload, None, None) == 0:  # PTRACE_SEIZE
            traced.append(payload)
        shut(session)

    with monkeypatch.context() as patched:
        patched.setattr(EvaluationSession, "_close", trace_and_close)
        assert bench.judge(request(HANGS["signals ignored"])).verdict == "correct"
    if not traced:
        pytest.skip("this user may not trace a process of the sandbox")
    assert Path(f"/proc/{traced[0]}").exists()
    start = time.monotonic()
    bench.host.wait_closed()
    lasted = time.monotonic() - start
    report = bench.judge(request(RIGHT))
    os.waitpid(traced[0], 0)

    assert report.verdict == "correct"
    assert lasted < 2.0


LOOPS = {
    "at import": ("while True: 0\n" + RIGHT, "load"),
    "in the constructor": (
        "import torch\nclass Work:\n    def __init__(self):\n        while True: 0\n"
        "work = Work()\n",
        "load",
    ),
    "at import, of a file that builds an extension": (
        "import torch\nfrom torch.utils.cpp_extension import load_inline\nwhile True: 0\n"
        "ext = load_inline('ext', 'int f() { return 1; }', functions=['f'])\n" + RIGHT,
        "load",
    ),
    "in the first call": ("def work(x):\n    while True: 0\n", "correctness"),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_holds_a_worker_for_the_limit_of_its_stage(bench, loop):
    source, stage = LOOPS[loop]
    limits = LIMITS.model_copy(update={"load_s": 1.0, "call_timeout_s": 1.0, "build_s": 60.0})
    report = bench.judge(request(source, limits=limits))
    stages = {item.name: item.wall_s for item in report.stages}

    assert isinstance(report.outcome, Failed), report.outcome
    assert (report.outcome.stage, report.outcome.reason) == (stage, "timeout"), report.outcome
    assert stages.get("build", 0.0) + stages.get(stage, 0.0) < 8.0


SEMAPHORES = """import ctypes, torch
libc = ctypes.CDLL(None)
if libc.semget(0, 32000, 0o1600) >= 0:
    raise RuntimeError("it made semaphores")
if libc.syscall({io_setup}, 1000, ctypes.byref(ctypes.c_ulong(0))) >= 0:
    raise RuntimeError("it made a queue of the kernel")
def work(x):
    return torch.tanh(x) * 2
"""


def test_memory_of_the_kernel_that_no_count_shows_cannot_be_had(bench):
    number = {"x86_64": 206, "aarch64": 0}[platform.machine()]
    report = bench.judge(request(SEMAPHORES.format(io_setup=number)))
    assert report.verdict == "correct", report.outcome


FILLED = """import os, sys, torch
names = list(sys.modules)
host = next(sys.modules[n] for n in names if hasattr(sys.modules[n], "HostCallMemory"))
host._read = lambda fd, count: b""
def work(x):
    for fd in range(3, 64):
        try:
            os.set_blocking(fd, {blocking})
            if os.readlink(f"/proc/self/fd/{{fd}}").startswith(("pipe:", "anon_inode:[eventfd]")):
                os.eventfd_write(fd, 2**64 - 2)
        except OSError:
            pass
    return torch.tanh(x) * 2
"""


@pytest.mark.timeout(60)
@pytest.mark.parametrize("blocking", [True, False])
def test_no_candidate_can_block_its_supervisor_after_a_call(bench, blocking):
    """An event of one file description could be filled, or be set not to block.

    A candidate whose own channel does not block any more fails by itself.
    """
    report = bench.judge(request(FILLED.format(blocking=blocking)))
    assert report.verdict == ("correct" if blocking else "failed"), report.outcome


FIRST_THREAD_ENDS = """import ctypes, platform, sys, threading, torch
def work(x):
    return torch.tanh(x) * 2
frame, runner, handlers = sys._getframe(1), None, None
while frame is not None:
    mine = frame.f_locals.get("self")
    runner = mine if type(mine).__name__ == "RunnerProcess" else runner
    handlers = frame.f_locals.get("handlers", handlers)
    frame = frame.f_back
def serve():
    runner.function = work
    runner.channel.send("loaded", {}, b"")
    while True:
        frame = runner.channel.receive()
        handlers[frame.kind](frame)
if runner is not None:
    threading.Thread(target=serve, daemon=True).start()
    ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""


def test_a_candidate_whose_first_thread_has_ended_ends(bench):
    """The kernel shows no memory of such a process, so that no limit would hold."""
    report = bench.judge(request(FIRST_THREAD_ENDS, timing=TIMED))
    assert isinstance(report.outcome, Failed), report.outcome
    assert "first thread has ended" in report.outcome.message
