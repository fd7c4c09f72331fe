"""The process of a stage: `tilewright` with some words, which ends in time and with this one."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

EXIT_S = 60.0
"""Seconds that a process gets to end after an interrupt: it writes a batch of verdicts."""
POLL_S = 0.2
PR_SET_PDEATHSIG = 1
Shown = Callable[[str], None]


class OutOfTime(Exception):
    """The time of this invocation is over; the stage goes on in the next one."""


def run_command(words: Sequence[str], log: Path, until: float, shown: Shown) -> tuple[int, str]:
    """Run `tilewright WORDS`; return its exit status and the last line that it wrote.

    Its output is appended to `log`. It ends with this process, also if that is killed.

    Raises:
        OutOfTime: it was interrupted, because the time is over.
    """
    with log.open("ab") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "tilewright", *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=_end_with_parent,
        )
    try:
        while child.poll() is None:
            if time.monotonic() > until:
                raise OutOfTime
            shown(_last_line(log))
            time.sleep(POLL_S)
    finally:
        _end(child)
    return child.returncode, _last_line(log)


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(EXIT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].removeprefix("tilewright: ") if lines else ""
