"""Measure how much two processes of one function differ here, and store it as the calibration.

python -m benchmarks.calibrate [RUNS]
"""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

from benchmarks.aa import QUIET, Run, collect
from benchmarks.bars import home
from tilewright.evaluator.calibration import CLASSES_US, DEFAULT, write_calibration
from tilewright.evaluator.environment import device_key
from tilewright.evaluator.host import plan_cores
from tilewright.scoring import statistics

Z95 = 1.96
FLOOR = 0.002


def sigma(runs: list[Run], assumed: float) -> float:
    """Return the smallest between-process sigma with which 95 % of the runs cover 1.

    Each run's half-width holds the within-process part and the `assumed` sigma in quadrature;
    the latter is taken out, and the excess of each error over the rest is what must be covered.
    """
    needed = []
    for run in runs:
        half = run.high - run.log_ratio if run.log_ratio < 0 else run.log_ratio - run.low
        within = math.sqrt(max(half**2 - (Z95 * assumed) ** 2, 0.0))
        needed.append(math.sqrt(max(run.log_ratio**2 - within**2, 0.0)) / Z95)
    return max(statistics.quantile(needed, 0.95), FLOOR)


def calibrate(runs: int, folder: Path) -> tuple[float, ...]:
    """Make A/A runs with the wide default and store the sigma that they need."""
    quiet = [run for run in collect(runs, 0.0, None, 1800.0) if run.control <= QUIET]
    found = list(DEFAULT.sigmas)
    for index, limit in enumerate(CLASSES_US):
        below = CLASSES_US[index - 1] if index else 0.0
        members = [run for run in quiet if below < run.call_us <= limit]
        if len(members) >= 20:
            found[index] = sigma(members, DEFAULT.sigmas[index])
    cores = plan_cores(list(os.sched_getaffinity(0)))
    write_calibration(folder, device_key(cores), tuple(found))
    return tuple(found)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 120
    (home() / "calibration.json").unlink(missing_ok=True)
    print(calibrate(count, home()))
