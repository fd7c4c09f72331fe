"""Measure the process-to-process variation of this machine, and store it as the calibration.

python -m benchmarks.accuracy.calibrate [RUNS]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchmarks.accuracy.aa import MAX_CONTROL_SPREAD, Run, collect
from benchmarks.bars import home
from tilewright.cli.self_comparison import Sample, calibrated
from tilewright.evaluator.devices.devices import plan_cores
from tilewright.evaluator.devices.recorded_environment import device_key
from tilewright.evaluator.timing.calibration import CLASSES, write_calibration


def samples(run: Run) -> list[Sample]:
    """Return the process replicates of a run as samples for the calibration."""
    return [
        Sample(run.problem, "", run.call_us, run.moved_bytes, log_ratio, within)
        for log_ratio, within in run.replicates
    ]


def calibrate(runs: int, folder: Path) -> list[str]:
    """Make A/A runs and store their sigma; return one line per class of calls."""
    quiet = [run for run in collect(runs, 0.0, None, 1800.0) if run.control <= MAX_CONTROL_SPREAD]
    sigmas, counts = calibrated([made for run in quiet for made in samples(run)])
    write_calibration(folder, device_key(plan_cores(list(os.sched_getaffinity(0)))), sigmas)
    return [
        f"{name}: {sigma:.4f} from {count} runs"
        for name, sigma, count in zip(CLASSES, sigmas, counts, strict=True)
    ]


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 120
    for line in calibrate(count, home()):
        print(line)
