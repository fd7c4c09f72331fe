"""Commands of a study: their status and last line, their end in time, and with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tilewright.errors import ConfigError, InfrastructureError
from tilewright.rl.study.stages import (
    OutOfTime,
    check_study,
    run_command,
    settings_text,
    stages_of,
)
from tilewright.rl.study.study_config import ArmSection, load_study
from tilewright.rl.study.study_folder import open_study

REHEARSAL = load_study("nano-rehearsal.yaml")
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
        run_command(SLOW, tmp_path / "log", time.monotonic() + 1.0, lambda _: None)
    assert time.monotonic() - began < 30.0
    assert set(psutil.Process().children()) <= before


def test_a_command_ends_with_its_parent(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; "
        "from tilewright.rl.study.stages import run_command; "
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


def test_a_wrong_setting_of_an_arm_is_found_before_anything_runs(tmp_path):
    arms = {**REHEARSAL.arms, "odd": ArmSection(changes={"overrides.reward.coverage": -1})}
    folder = open_study(tmp_path, REHEARSAL.model_copy(update={"arms": arms}))
    with pytest.raises(ConfigError, match=r"arms\.odd: .*coverage"):
        check_study(folder)


def test_a_gate_that_crashes_is_our_failure_and_lets_no_arm_run(tmp_path):
    """Without a cold-started model `train gate` ends with an error, and leaves no lines."""
    folder = open_study(tmp_path, REHEARSAL)
    (gate,) = [stage for stage in stages_of(folder, lambda _: None) if stage.name == "gate"]
    with pytest.raises(InfrastructureError, match=r"gate: exit status 2: .*no cold-started model"):
        gate.run(time.monotonic() + 100)
    assert not gate.is_done()


@pytest.mark.parametrize("name", ["nano.yaml", "nano-rehearsal.yaml"])
def test_the_studies_that_come_with_tilewright_can_be_trained(tmp_path, name):
    check_study(open_study(tmp_path, load_study(name)))


def test_changes_become_values_of_set():
    assert settings_text({"a.b": False, "c": "off", "d": None}) == [
        "a.b=false", 'c="off"', "d=null",
    ]  # fmt: skip
