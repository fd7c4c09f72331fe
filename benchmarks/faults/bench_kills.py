"""Bar: `tilewright bench`, killed at random and resumed, ends like an undisturbed run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.bars import Bar, finish
from tilewright.records.event_log import read_events
from tilewright.records.events import TurnFinished

KILLS = 10
CANDIDATES = 160
"""Enough candidates that the run cannot end before its last kill."""
GOOD = "import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, -1)  # {n}\n"
BAD = "def softmax(x):\n    return x * {n}\n"
SETTINGS = ("--set", "eval.timing.enabled=false")


def _start(folder: Path, *args: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tilewright", "bench", *args]
    environment = {**os.environ, "TILEWRIGHT_HOME": str(folder / "home")}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def verdicts(run: Path) -> dict[str, list[str]]:
    """Return the verdicts of each candidate, one for each time that the log has its turn."""
    found: dict[str, list[str]] = {}
    for event in read_events(run):
        if isinstance(event, TurnFinished):
            found.setdefault(event.turn.ask.id, []).extend(
                item.verdict for item in event.turn.judgements
            )
    return found


def _candidates(folder: Path, count: int) -> Path:
    path = folder / "candidates.jsonl"
    rows = [
        {"problem": "softmax", "code": (BAD if n % 3 == 0 else GOOD).format(n=n + 2)}
        for n in range(count)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def killed(
    folder: Path, kills: int, seed: int, count: int = CANDIDATES
) -> tuple[dict[str, list[str]], int]:
    """Kill a run `kills` times at random moments; return its verdicts and the number of kills."""
    choices, made = random.Random(seed), 0
    first = ("softmax", "--candidates", str(_candidates(folder, count)), "--out", "runs", *SETTINGS)
    process = _start(folder, *first)
    while True:
        if made < kills:
            limit = time.monotonic() + choices.uniform(0.5, 5.0)
            while process.poll() is None and time.monotonic() < limit:
                time.sleep(0.02)
        else:
            process.wait(300)
        runs = sorted((folder / "runs").glob("*/events.jsonl"))
        if process.poll() == 0:
            return verdicts(runs[0].parent), made
        process.send_signal(signal.SIGKILL)
        process.wait()
        made += 1
        again = ("--resume", str(runs[0].parent)) if runs else first
        process = _start(folder, *again)


def run(only: str = "") -> list[Bar]:  # noqa: ARG001 - one table
    """Return the bar."""
    with tempfile.TemporaryDirectory() as place:
        undisturbed, disturbed = Path(place) / "undisturbed", Path(place) / "killed"
        undisturbed.mkdir()
        disturbed.mkdir()
        wanted, _ = killed(undisturbed, 0, 0)
        seen, kills = killed(disturbed, KILLS, 1)
    same = sum(seen.get(ask) == found for ask, found in wanted.items())
    text = f"{same} of {len(wanted)} the same after {kills} kills"
    held = seen == wanted and len(wanted) == CANDIDATES and kills == KILLS
    wanted_text = f"all the same, each once, {KILLS} kills"
    return [Bar("bench: killed at random moments", wanted_text, text, held)]


if __name__ == "__main__":
    sys.exit(finish(run()))
