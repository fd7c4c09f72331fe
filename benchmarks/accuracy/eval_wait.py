"""Bar: seconds of `tilewright eval` for a candidate with one more byte, with a warm host and cold.

Both are measured in turn. The wait for a device that others use does not count.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.bars import ROOT, Bar, finish
from tilewright.executors.host_connection import running_hosts, stop_host
from tilewright.scoring.bootstrap import median

EVALUATIONS = 8
"""Evaluations of either kind; the first with a host starts it, and does not count."""
MAX_COLD_S, MAX_WARM_S = 5.0, 2.0
"""Most seconds on two cores. The stages `correctness` and `timing` alone take 3 s or more."""
MIN_SAVED_S = 1.5
"""Seconds that a warm host saves, for which it is worth its memory."""
SOURCE = ROOT / "src/tilewright/problems/bundled/softmax/candidates/torch_steps.py"
JUDGING = ("correctness", "timing")
WAITING = "device_wait"


def evaluate(folder: Path, number: int, option: str) -> tuple[float, float]:
    """Evaluate a new candidate; return the seconds, and those without both stages of judging."""
    candidate = folder / "candidate.py"
    candidate.write_text(SOURCE.read_text(encoding="utf-8") + "#" * (number + 1) + "\n")
    command = [sys.executable, "-m", "tilewright", "eval", str(candidate), "-p", "softmax", option]
    environment = {**os.environ, "TILEWRIGHT_HOME": str(folder / "home")}
    start = time.monotonic()
    done = subprocess.run(
        [*command, "--json"], cwd=folder, env=environment, capture_output=True, check=True
    )
    wall_s = time.monotonic() - start
    stages = {item["name"]: item["wall_s"] for item in json.loads(done.stdout)["stages"]}
    counted_s = wall_s - stages[WAITING]
    return counted_s, counted_s - sum(stages[name] for name in JUDGING)


def _rows(folder: Path) -> dict[str, list[tuple[float, float]]]:
    """Evaluate with a host and without one in turn; return both seconds of each evaluation."""
    evaluate(folder, 0, "--host")
    rows: dict[str, list[tuple[float, float]]] = {"--host": [], "--no-host": []}
    for number in range(EVALUATIONS):
        for option, found in rows.items():
            found.append(evaluate(folder, number, option))
    return rows


def run(only: str = "") -> list[Bar]:  # noqa: ARG001 - one table
    """Return the bars."""
    with tempfile.TemporaryDirectory(prefix="eval-wait-") as place:
        folder = Path(place)
        try:
            rows = _rows(folder)
        finally:
            for path, state in list(running_hosts()):
                if state.home == str(folder / "home"):
                    stop_host(path)
    warm_s, cold_s = (median([row[0] for row in rows[o]]) for o in ("--host", "--no-host"))
    beyond_s, cold_beyond_s = (median([row[1] for row in rows[o]]) for o in rows)
    saved_s = cold_beyond_s - beyond_s
    print(f"beyond correctness and timing: cold {cold_beyond_s:.2f} s, warm {beyond_s:.2f} s")
    return [
        Bar("eval, cold", f"<= {MAX_COLD_S:g} s", f"{cold_s:.1f} s", cold_s <= MAX_COLD_S),
        Bar("eval, warm host", f"<= {MAX_WARM_S:g} s", f"{warm_s:.1f} s", warm_s <= MAX_WARM_S),
        Bar(
            "eval, saved by a warm host",
            f">= {MIN_SAVED_S:g} s",
            f"{saved_s:.1f} s",
            saved_s >= MIN_SAVED_S,
        ),
    ]


if __name__ == "__main__":
    sys.exit(finish(run()))
