"""The file lock: one holder at a time, also between processes, and free when its holder ends."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from tilewright.records.file_lock import lock, lock_when_free, try_lock

HOLDER = """
import sys
from tilewright.records.file_lock import lock
with open(sys.argv[1], "a") as file:
    lock(file)
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_a_second_opener_gets_the_lock_only_after_the_first_closes(tmp_path: Path):
    with open(tmp_path / "lock", "a") as second:
        with open(tmp_path / "lock", "a") as first:
            assert try_lock(first)
            assert not try_lock(second)
        assert try_lock(second)


def test_the_lock_of_a_process_is_free_when_the_process_is_killed(tmp_path: Path):
    path = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"locked\n"
    with open(path, "a") as file:
        assert not try_lock(file)
        holder.kill()
        holder.communicate()
        lock(file)


def test_waiting_for_the_lock_is_reported_once_and_ends_when_it_is_stopped(tmp_path: Path):
    stop, waits = threading.Event(), list[str]()
    with open(tmp_path / "lock", "a") as first, open(tmp_path / "lock", "a") as second:
        assert lock_when_free(first, stop, 0.01, lambda: waits.append("first"))
        timer = threading.Timer(0.1, stop.set)
        timer.start()
        assert not lock_when_free(second, stop, 0.01, lambda: waits.append("second"))
        timer.join()
    assert waits == ["second"]
