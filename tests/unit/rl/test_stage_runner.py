"""The process of a stage: its status and last line, its end in time, and with its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tilewright.rl.stage_runner import OutOfTime, run_command, settings_text

SLOW = ["serve", "--port", "0"]
"""A command that does not end by itself."""


def test_the_status_and_the_last_line_of_a_command_are_returned(tmp_path):
    shown: list[str] = []
    status, last = run_command(
        ["problems", "list", "nano/nothing"], tmp_path / "log", time.monotonic() + 60, shown.append
    )
    assert status != 0
    assert "no problem 'nothing'" in last
    assert not last.startswith("tilewright: ")


def test_a_command_is_interrupted_when_the_time_is_over(tmp_path):
    began, before = time.monotonic(), set(psutil.Process().children())
    with pytest.raises(OutOfTime):
        run_command(SLOW, tmp_path / "log", time.monotonic() + 4.0, lambda _: None)
    assert time.monotonic() - began < 45.0
    assert set(psutil.Process().children()) <= before


def test_a_command_ends_with_its_parent(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; "
        "from tilewright.rl.stage_runner import run_command; "
        f"run_command({SLOW!r}, Path(sys.argv[1]), time.monotonic() + 600, lambda _: None)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "log")])
    until = time.monotonic() + 60
    while not (children := psutil.Process(parent.pid).children()) and time.monotonic() < until:
        time.sleep(0.05)
    (child,) = children
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    child.wait(30)
    assert not child.is_running()


def test_changes_become_values_of_set():
    assert settings_text({"a.b": False, "c": "off", "d": None}) == [
        "a.b=false", 'c="off"', "d=null",
    ]  # fmt: skip
