"""Stages of a long training, one after another, each in processes of its own. No torch.

Each invocation goes on where the last one ended: a finished stage is not run again, and a training
resumes from its log. So a training may be spread over days, and a kill costs at most one step.
"""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.errors import ConfigError, writing
from tilewright.records.file_lock import try_lock
from tilewright.records.whole_files import write_whole

EXIT_S = 60.0
"""Seconds that a process gets to end after an interrupt: it writes a batch of verdicts."""
MIN_STAGE_S = 20.0
"""Seconds that must be left for a stage to begin: a training takes ten to load its packages."""
POLL_S = 0.2
PR_SET_PDEATHSIG = 1
SECONDS = "seconds.json"
LOCK = "lock"
Shown = Callable[[str], None]


@dataclass(frozen=True)
class TrainingStage:
    """A part of a training. `run` gets the time of `time.monotonic` at which it must be over."""

    name: str
    is_done: Callable[[], bool]
    run: Callable[[float], None]


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the folder of a training for this process: two would train one stage twice.

    Raises:
        ConfigError: another process has it.
    """
    with writing(folder):
        opened = (folder / LOCK).open("w")
    with opened as file:
        if not try_lock(file):
            raise ConfigError(f"another process trains in {folder}; wait for it, or stop it")
        yield


class OutOfTime(Exception):
    """The time of this invocation is over; the stage goes on in the next one."""


def run_stages(
    folder: Path, stages: Iterable[TrainingStage], until: float, shown: Shown
) -> list[str]:
    """Run the stages that are not done until a time of `time.monotonic`; return those left.

    The seconds of each stage are added up in the folder. A stage may raise its own errors.
    """
    listed = list(stages)
    for stage in listed:
        if stage.is_done():
            continue
        if until - time.monotonic() < MIN_STAGE_S:
            break
        shown(stage.name)
        began = time.monotonic()
        try:
            stage.run(until)
        except OutOfTime:
            break
        finally:
            add_seconds(folder, stage.name, time.monotonic() - began)
    return [stage.name for stage in listed if not stage.is_done()]


def seconds_of(folder: Path) -> dict[str, float]:
    """Return the seconds of each stage so far, over all invocations."""
    path = folder / SECONDS
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def add_seconds(folder: Path, name: str, seconds: float) -> None:
    """Add seconds to those of a stage."""
    found = seconds_of(folder)
    found[name] = round(found.get(name, 0.0) + seconds, 1)
    with writing(folder):
        write_whole(folder / SECONDS, json.dumps(found))


def settings_text(changes: dict[str, Any]) -> list[str]:
    """Return changes as the values of `--set`."""
    return [f"{path}={json.dumps(value)}" for path, value in changes.items()]


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
