"""Bar: a logger with a full disk or a missing service costs a warning and under 1 % of time.

A search whose evaluations last a second each runs without a logger and with a failing one, in turn.
A full disk is a tmpfs of 16 KiB in a mount namespace. A missing service is a port that nobody
listens on. Only the loggers are measured whose packages this Python has; the others are not shown.

`python -m benchmarks.faults.failing_loggers FOLDER [LOGGER]` plays one run and prints its result.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.bars import ROOT, Bar
from benchmarks.search.loop_cost import copied_problems, played_turns
from tilewright.integrations.run_loggers import logged

PROBLEMS, TURNS, EVALUATION_S = 8, 30, 1.0
"""A run of half a minute: eight evaluations at once, and thirty for each problem."""
PAIRS = 3
MAX_COST = 0.01
"""Largest share of the run's time that a failing logger may cost."""
LONGEST_S = 300.0
NOWHERE = "http://127.0.0.1:9"
"""An address at which no service answers."""


@dataclass(frozen=True)
class Fault:
    """A logger, what fails, and the variables that make it so; `{full}` is the full disk."""

    logger: str
    what: str
    variables: dict[str, str]
    mounted: str = ""
    """Where the full disk is: in the folder of the run, or `{full}`."""


FAULTS = (
    Fault("tensorboard", "full disk", {}, "tensorboard"),
    Fault("trackio", "full disk", {"TRACKIO_DIR": "{full}/trackio"}, "{full}"),
    Fault("wandb", "full disk", {}, "wandb"),
    Fault("mlflow", "full disk", {"MLFLOW_TRACKING_URI": "sqlite:///{full}/m.db"}, "{full}"),
    Fault("mlflow", "missing service", {"MLFLOW_TRACKING_URI": NOWHERE}),
    Fault(
        "wandb",
        "missing service",
        {"WANDB_MODE": "online", "WANDB_BASE_URL": NOWHERE, "WANDB_API_KEY": "0" * 40},
    ),
)


def _play(folder: Path, loggers: tuple[str, ...]) -> None:
    """Play one run, and print its seconds and its warnings."""
    warnings: list[str] = []
    start = time.monotonic()
    with logged(folder, loggers, warnings.append):  # type: ignore[arg-type]
        count = sum(1 for _ in played_turns(folder, copied_problems(PROBLEMS), TURNS, EVALUATION_S))
    found = {"seconds": time.monotonic() - start, "warnings": warnings, "turns": count}
    print(json.dumps(found), flush=True)


def _measured(fault: Fault | None) -> dict[str, Any] | None:
    """Return what one run printed; `None`: no file system can be mounted here."""
    with tempfile.TemporaryDirectory() as place:
        run, full = Path(place) / "run", Path(place) / "full"
        run.mkdir()
        full.mkdir()
        command = [sys.executable, "-m", "benchmarks.faults.failing_loggers", str(run)]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        if fault is not None:
            command.append(fault.logger)
            named = {name: text.format(full=full) for name, text in fault.variables.items()}
            environment |= named
            if fault.mounted:
                mounted = run / fault.mounted.format(full=full)
                mounted.mkdir(exist_ok=True)
                mount = f'mount -t tmpfs -o size=16k none "{mounted}" && exec "$@"'
                if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
                    return None
                command = ["unshare", "-rm", "sh", "-c", mount, "sh", *command]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=LONGEST_S
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found


def _bar(fault: Fault) -> Bar:
    name, wanted = f"loggers: {fault.logger}, {fault.what}", "one warning, < 1 % of time"
    if importlib.util.find_spec(fault.logger) is None:
        return Bar(name, wanted, "not shown: its package is not installed", held=True)
    plain: list[float] = []
    failing: list[float] = []
    warnings, complete = [], True
    for number in range(PAIRS):
        for chosen in (None, fault) if number % 2 else (fault, None):
            seen = _measured(chosen)
            if seen is None:
                return Bar(name, wanted, "not shown: no file system can be mounted", held=True)
            (plain if chosen is None else failing).append(seen["seconds"])
            complete &= seen["turns"] == PROBLEMS * TURNS
            if chosen is not None:
                warnings.append(seen["warnings"])
        print(f"{name}: {plain[-1]:.2f} s, with it {failing[-1]:.2f} s", flush=True)
    cost = statistics.median(failing) / statistics.median(plain) - 1
    once = all(len(said) == 1 and f"logger {fault.logger} failed" in said[0] for said in warnings)
    text = f"{'one warning' if once else f'{warnings}'}, {cost:+.2%} of {plain[0]:.0f} s"
    details = {"plain_s": plain, "failing_s": failing, "warnings": warnings}
    return Bar(name, wanted, text, once and complete and cost < MAX_COST, details)


def run(only: str = "") -> list[Bar]:
    """Return one bar for each logger and fault."""
    return [_bar(fault) for fault in FAULTS if only in f"{fault.logger}, {fault.what}"]


if __name__ == "__main__":
    _play(Path(sys.argv[1]), tuple(sys.argv[2:]))
