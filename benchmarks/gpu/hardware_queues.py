"""Effect of hardware queues on calls of many kernels.

`python -m benchmarks.gpu.hardware_queues [NAME ...]` times the same references in fresh processes.
They have few queues or the driver's own number of them, in turn. The clocks are events around a
call, and the clock of a caller that synchronises. cuDNN runs a recurrent network on streams of its
own. `KERNELBENCH` names the problems, a JSON line each.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from tilewright.evaluator.devices.devices import FEW_QUEUES, QUEUES

SETTINGS = (str(FEW_QUEUES), "8", "32")
PROCESSES, WARM_UP, CALLS = 3, 5, 15
KNOWN = tuple(f"level3-{number}" for number in range(35, 43))


def sources(names: list[str]) -> dict[str, str]:
    """Return the text of each named problem."""
    lines = Path(os.environ["KERNELBENCH"]).read_text(encoding="utf-8").splitlines()
    rows = {
        f"level{row['level']}-{row['problem_id']}": row["code"] for row in map(json.loads, lines)
    }
    return {name: rows[name] for name in names}


def timed(source: str) -> tuple[float, float]:
    """Return the microseconds of a call by its events, and by the clock of the caller."""
    import torch

    space: dict[str, Any] = {"__name__": "problem"}
    torch.manual_seed(0)
    exec(compile(source, "problem", "exec"), space)
    model = space["Model"](*space["get_init_inputs"]()).cuda().eval()
    inputs = [item.cuda() if torch.is_tensor(item) else item for item in space["get_inputs"]()]
    by_events, by_caller = list[float](), list[float]()
    with torch.no_grad():
        for number in range(WARM_UP + CALLS):
            begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            start = time.perf_counter()
            begun.record()
            model(*inputs)
            ended.record()
            torch.cuda.synchronize()
            if number >= WARM_UP:
                by_caller.append((time.perf_counter() - start) * 1e6)
                by_events.append(begun.elapsed_time(ended) * 1e3)
    return median(by_events), median(by_caller)


def in_one_process(names: list[str]) -> None:
    """Print what each problem takes here, as one line of JSON."""
    print(json.dumps({name: timed(text) for name, text in sources(names).items()}))


def main() -> None:
    """Print a row a problem: microseconds in each process, by events and by the caller."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu.hardware_queues", description=__doc__
    )
    parser.add_argument("problems", nargs="*", default=list(KNOWN))
    parser.add_argument("--here", action="store_true", help="in this process, with its queues")
    options = parser.parse_args()
    if options.here:
        in_one_process(options.problems)
        return
    found: dict[str, list[dict[str, list[float]]]] = {setting: [] for setting in SETTINGS}
    command = [sys.executable, "-m", "benchmarks.gpu.hardware_queues", "--here", *options.problems]
    for _ in range(PROCESSES):
        for setting in SETTINGS:
            done = subprocess.run(
                command, env={**os.environ, QUEUES: setting}, capture_output=True, text=True
            )
            if done.returncode:
                sys.exit(done.stderr[-2000:])
            found[setting].append(json.loads(done.stdout.splitlines()[-1]))
            print(f"{setting} queues: done", file=sys.stderr, flush=True)
    Path(os.environ.get("OUT", "out")).mkdir(exist_ok=True)
    (Path(os.environ.get("OUT", "out")) / "gpu_queues.json").write_text(json.dumps(found))
    for way, title in enumerate(("by events", "by the caller")):
        print(f"\n{title}, us | " + " | ".join(f"{setting} queues" for setting in SETTINGS))
        for name in options.problems:
            cells = [
                " ".join(f"{run[name][way]:.0f}" for run in found[setting]) for setting in SETTINGS
            ]
            print(f"{name} | " + " | ".join(cells))


if __name__ == "__main__":
    main()
