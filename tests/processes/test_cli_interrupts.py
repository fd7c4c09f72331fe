"""The command line with real evaluations: interrupts, full disks, a file that is watched."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.processes.command_line import (
    CANDIDATES,
    COMMAND,
    UNTIMED,
    WARM,
    folder,
    home,
    judge,
    run,
)
from tilewright.records.run_folder import read_report

__all__ = ["folder", "home"]
pytest.importorskip("torch")
pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("folder")]


@pytest.fixture
def small_disk(folder):
    """Return a folder on a file system with space for settings but not for a report."""
    place = folder / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_loses_no_report(home, small_disk):
    answer = judge("odd", "--out", str(small_disk), *WARM)
    assert answer.returncode == 2
    assert answer.stdout.startswith("incorrect  ")
    (line,) = [line for line in answer.stderr.splitlines() if "error:" in line]
    assert "no space left on device" in line
    rescued = Path(line.split("written to ")[1].split(" instead")[0])
    assert rescued.is_relative_to(home)
    assert read_report(rescued).verdict == "incorrect"


def test_a_read_only_disk_is_named_before_anything_is_judged(small_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    answer = judge("odd", "--out", str(small_disk))
    assert answer.returncode == 2
    assert answer.stdout == ""
    (line,) = answer.stderr.splitlines()
    assert "read-only file system; name another folder with --out" in line
    answer = run("problems", "new", "mine", "--dir", str(small_disk))
    assert answer.returncode == 2
    assert "cannot be written" in answer.stderr
    assert "Traceback" not in answer.stderr


def wait_for(path: Path, wanted: int, timeout_s: float = 200.0) -> None:
    deadline = time.monotonic() + timeout_s
    while len(list(path.glob("*/report.json"))) < wanted:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def interruptible() -> None:
    """Take interrupts, also where whoever runs the tests ignores them, as a shell's `&` does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_watch_judges_again_at_each_save_until_interrupted(folder):
    words = ["eval", "honest.py", "-p", "double.py", "--watch", *UNTIMED]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*COMMAND, *words], **pipes, preexec_fn=interruptible) as process:
        try:
            wait_for(folder / "runs", 1)
            time.sleep(0.5)
            (folder / "honest.py").write_text(CANDIDATES["odd"])
            wait_for(folder / "runs", 2)
            time.sleep(0.5)
        finally:
            process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert out.startswith("correct  ")
    assert "\nincorrect  " in out
    assert "tilewright: broke: correct before, incorrect now\n" in err
    assert "Traceback" not in err
    assert err.splitlines()[-1] == "tilewright: interrupted"


@pytest.mark.parametrize(
    "send",
    [os.kill, os.killpg],
    ids=["to the command", "to all, as a terminal does"],
)
def test_an_interrupt_leaves_neither_a_process_nor_a_run_folder(folder, send):
    (folder / "slow.py").write_text(
        "import time\ndef double(x):\n    time.sleep(15)\n    return x\n"
    )
    words = ["eval", "slow.py", "-p", "double.py", "-v"]
    process = subprocess.Popen(
        [*COMMAND, *words],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=interruptible,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "correctness" in line:
            break
    send(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    left = subprocess.run(
        ["pgrep", "-s", str(process.pid)], capture_output=True, text=True, check=False
    )
    assert left.stdout == ""
    assert list((folder / "runs").iterdir()) == []
