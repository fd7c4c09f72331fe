"""Bar: time and memory of an evaluation outside its calls, with idle and with new processes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.bars import Bar, executor, finish
from benchmarks.process_tree import descendants
from tilewright.api import build_request
from tilewright.config import load
from tilewright.executors.local import LocalExecutor
from tilewright.problems.loader import parse_problem
from tilewright.records import EvalReport, EvalRequest
from tilewright.scoring.bootstrap import median

PROBLEM = """import torch

CASES = [{"name": "one", "rows": 64, "cols": 1024}]
ENTRY = "work"


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return torch.softmax(x, dim=-1)
"""
CANDIDATE = "import torch\n\n\ndef work(x):\n    return torch.softmax(x, dim=-1)  # {}\n"
RUNS, PASSES = 15, 3
"""Evaluations in a pass, and passes, which are spread over the run. The median is over all of them.
The bar prints each pass: they differ if other programs load the machine."""
FRESH_RUNS = 3


def request(number: int) -> EvalRequest:
    """Return a request for a small honest candidate, different each time."""
    problem = parse_problem(PROBLEM, "cost/softmax", "work", "cost")
    return build_request(CANDIDATE.format(number), problem, load(environ={}))


def own_cost(report: EvalReport) -> float:
    """Return the seconds outside the calls of candidate and baseline."""
    total = next(stage for stage in report.stages if stage.name == "total")
    return float(total.detail.split()[0])


def idle_processes(local: LocalExecutor, first: int) -> tuple[list[float], list[float]]:
    """Return own cost and total seconds of evaluations by processes that already run."""
    local.evaluate(request(first - 1))
    costs, walls = [], []
    for number in range(first, first + RUNS):
        start = time.monotonic()
        report = local.evaluate(request(number))
        walls.append(time.monotonic() - start)
        costs.append(own_cost(report) + walls[-1] - report.stages[-1].wall_s)
        if number == first:
            print({s.name: round(s.wall_s, 3) for s in report.stages}, flush=True)
    return costs, walls


def fresh() -> list[float]:
    """Return own cost if supervisor, forkserver and torch start for one evaluation."""
    costs = []
    for number in range(FRESH_RUNS):
        start = time.monotonic()
        with executor() as local:
            report = local.evaluate(request(1000 + number))
            costs.append(time.monotonic() - start - _call_s(report))
    return costs


def _call_s(report: EvalReport) -> float:
    return float(report.stages[-1].detail.split("outside ")[1].split()[0])


def memory(local: LocalExecutor) -> dict[str, float]:
    """Return peak resident MiB of the supervisor, and of judge and runner together."""
    import threading

    peak = {"supervisor": 0.0, "judge and runner": 0.0}
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.02):
            pid = local.pid or 0
            peak["supervisor"] = max(peak["supervisor"], _status(pid, "VmRSS"))
            below = descendants(pid)
            private = [_private(p) for p in below[1:]]
            peak["judge and runner"] = max(peak["judge and runner"], sum(private))

    thread = threading.Thread(target=watch)
    thread.start()
    for number in range(3):
        local.evaluate(request(2000 + number))
    stop.set()
    thread.join()
    return peak


def _status(pid: int, key: str) -> float:
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0.0
    return next((int(r.split()[1]) / 1024 for r in text.splitlines() if r.startswith(key)), 0.0)


def _private(pid: int) -> float:
    """Return the proportional set size in MiB, which counts pages of shared libraries once."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0.0
    return next((int(r.split()[1]) / 1024 for r in text.splitlines() if r.startswith("Pss:")), 0.0)


def cold_command() -> float:
    """Return the seconds of a cold `tilewright eval`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "problem.py").write_text(PROBLEM, encoding="utf-8")
        (path / "candidate.py").write_text(CANDIDATE.format("cold"), encoding="utf-8")
        command = [sys.executable, "-m", "tilewright", "eval", str(path / "candidate.py")]
        command += ["--problem", str(path / "problem.py"), "--json", "--out", str(path / "runs")]
        start = time.monotonic()
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
        return time.monotonic() - start


def run(only: str = "") -> list[Bar]:  # noqa: ARG001 - one table
    """Measure and return the bars."""
    with executor() as local:
        passes = [idle_processes(local, 100)]
        peak = memory(local)
        started = fresh()
        passes += [idle_processes(local, 100 * number) for number in range(2, PASSES + 1)]
    costs = [cost for made in passes for cost in made[0]]
    walls = [wall for made in passes for wall in made[1]]
    each = ", ".join(f"{median(made[0]):.3f}" for made in passes)
    # The first pass is the closest in time to the fresh processes.
    ratio = median(started) / median(passes[0][0])
    cold = cold_command()
    supervisor, both = peak["supervisor"], peak["judge and runner"]
    return [
        Bar(
            "cost: outside the calls",
            "median <= 0.250 s",
            f"{median(costs):.3f} s (total {median(walls):.3f} s); passes {each}",
            median(costs) <= 0.250,
        ),
        Bar(
            "cost: compared with a fresh interpreter",
            ">= 5 times below",
            f"{ratio:.1f} times ({median(started):.2f} s fresh)",
            ratio >= 5,
        ),
        Bar("cost: supervisor's memory", "< 80 MB", f"{supervisor:.0f} MB", supervisor < 80),
        Bar("cost: judge and runner", "< 1.5 GB", f"{both:.0f} MB", both < 1536),
        Bar("cost: cold `tilewright eval`", "< 10 s", f"{cold:.1f} s", cold < 10),
    ]


if __name__ == "__main__":
    sys.exit(finish(run()))
