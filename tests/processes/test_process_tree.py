"""The processes below an init process, found while they start and end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewright.evaluator.processes import process_tree
from tilewright.evaluator.processes.process_tree import ProcessTree

# A worker of pytest-xdist has one core at times, of which nothing can be taken.
pytestmark = pytest.mark.alone
MAX_HELD = 2  # The init and its payload.
INIT = """
import subprocess, sys
payload = '''
import os, subprocess, sys, threading, time
sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
made = []
def other():
    made.append(subprocess.Popen(sleep))
    time.sleep(60)
threading.Thread(target=other, daemon=True).start()
made.append(subprocess.Popen(sleep))
time.sleep(60)
'''
subprocess.Popen([sys.executable, "-c", payload]).wait()
"""


def fds() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def tree() -> Iterator[tuple[ProcessTree, subprocess.Popen[bytes]]]:
    init = subprocess.Popen([sys.executable, "-c", INIT])
    made = ProcessTree(init.pid)
    limit = time.monotonic() + 20
    while len(made.pids) < 3:
        assert time.monotonic() < limit, made.pids
        time.sleep(0.02)
        made.refresh()
    yield made, init
    for pid in made.pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    init.kill()
    init.wait()
    made.close()


def test_a_child_of_any_thread_is_found_and_the_payload_comes_first(tree):
    made, init = tree
    payload, *children = made.pids

    threads = os.listdir(f"/proc/{payload}/task")
    of_main = Path(f"/proc/{payload}/task/{payload}/children").read_text(encoding="ascii").split()
    assert len(threads) == 2
    assert len(of_main) == 1
    assert set(map(int, of_main)) < set(children)
    assert all(os.path.exists(f"/proc/{pid}") for pid in (init.pid, *made.pids))


def test_the_first_thread_of_the_payload_is_kept_on_one_core_and_no_other(tree):
    made, _ = tree
    payload = made.pids[0]
    before, core = os.sched_getaffinity(payload), min(os.sched_getaffinity(0))
    made.pin_main_thread((core,))
    (other,) = {int(name) for name in os.listdir(f"/proc/{payload}/task")} - {payload}
    assert os.sched_getaffinity(payload) == {core}
    assert os.sched_getaffinity(other) == before


def test_looking_keeps_a_bounded_number_of_descriptors(tree):
    made, _ = tree
    made.close()
    before = fds()
    for _ in range(20):
        made.refresh()
    assert fds() == before + 2 * MAX_HELD
    made.close()
    assert fds() == before


def test_ended_processes_are_left_out(tree):
    made, init = tree
    payload, *children = made.pids
    for pid in (*children, payload):
        os.kill(pid, signal.SIGKILL)
    init.wait()
    # A killed process that waits for a core still runs.
    limit = time.monotonic() + 20
    while not made.is_stopped():
        assert time.monotonic() < limit
        time.sleep(0.02)
    made.refresh()
    assert made.pids == []
    made.freeze()
    made.resume()


def test_looking_while_processes_start_and_end_raises_nothing():
    made, stop = ProcessTree(os.getpid()), threading.Event()

    def churn() -> None:
        while not stop.is_set():
            subprocess.run(["true"], check=True)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(3000):
            made.refresh()
    finally:
        stop.set()
        thread.join()
        made.close()


def test_whoever_waits_for_a_stop_leaves_its_core_to_others(tree, monkeypatch):
    made, _ = tree
    stopped_at = time.monotonic() + 0.4
    monkeypatch.setattr(process_tree, "_all_in", lambda *_: time.monotonic() > stopped_at)
    used_s = time.thread_time()
    assert made.freeze()
    assert time.thread_time() - used_s < 0.2
    made.resume()


FIRST_THREAD_ENDS = """
import ctypes, platform, sys, threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print(flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""


def test_a_payload_whose_first_thread_has_ended_hides():
    payload = subprocess.Popen([sys.executable, "-c", FIRST_THREAD_ENDS], stdout=subprocess.PIPE)
    assert payload.stdout is not None
    assert payload.stdout.readline()
    made = ProcessTree(os.getpid())
    made.pids = [payload.pid]
    limit = time.monotonic() + 20
    while not made.payload_hides():
        assert time.monotonic() < limit
        time.sleep(0.01)
    payload.kill()
    payload.wait()
    payload.stdout.close()
    made.close()


@pytest.mark.parametrize(
    ("state", "flags", "pending", "lives"),
    [
        ("S", 0x400040, 0, True),
        ("R", 0x400044, 0, False),
        ("D", 0x400040, 256, False),
        ("Z", 0x400040, 0, False),
    ],
)
def test_threads_of_a_process_that_ends_do_not_live_on(tmp_path, state, flags, pending, lives):
    fields = [state, *["0"] * 5, str(flags), *["0"] * 21, str(pending), "0", "0"]
    (tmp_path / "stat").write_text(f"12 (a) b) {' '.join(fields)}\n", encoding="ascii")
    assert process_tree._lives_on(str(tmp_path / "stat")) is lives
    assert not process_tree._lives_on(str(tmp_path / "none"))
