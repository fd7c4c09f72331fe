"""A command that is killed at random moments and repeated until it succeeds."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

MAX_RUNS = 60
"""Most invocations of a command: one that cannot continue is no endless loop."""
LONGEST_S = 1200.0
"""Most seconds of one invocation."""


def run_with_kills(
    start: Callable[[], subprocess.Popen[bytes]],
    kills: int,
    longest_s: float,
    choices: random.Random,
    shown: Callable[[int, str], None],
) -> tuple[int, int]:
    """Repeat a command until it succeeds; return the numbers of kills and of invocations.

    A kill comes 0.5 to `longest_s` seconds after a start, unless the command has ended by then.
    Every other kill hits the process of the command's stage, and not the command itself. `shown`
    receives the number of each kill, and what it hit.
    """
    made = begun = 0
    while begun < MAX_RUNS:
        process, stage = start(), made % 2 == 1
        begun += 1
        if made < kills:
            limit = time.monotonic() + choices.uniform(0.5, longest_s)
            while process.poll() is None and time.monotonic() < limit:
                time.sleep(0.02)
            if process.poll() is None:
                _kill(process, stage=stage)
                made += 1
                shown(made, "its stage" if stage else "the command")
        if process.wait(LONGEST_S) == 0:
            return made, begun
    return made, begun


def _kill(process: subprocess.Popen[bytes], *, stage: bool) -> None:
    """Kill a command, or the process of its stage if it has one."""
    if stage:
        listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        with suppress(OSError):
            if children := listed.read_text(encoding="ascii").split():
                os.kill(int(children[0]), signal.SIGKILL)
                process.wait(300)
                return
    process.kill()
    process.wait()


def newest_log(folder: Path) -> str:
    """Return the name of the text file that was written last; empty: there is none."""
    return max(folder.glob("*.txt"), key=lambda path: path.stat().st_mtime, default=Path()).stem
