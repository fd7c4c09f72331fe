"""Known delays on a GPU: a reference that sleeps on the device for 2, 5 and 10 % of its time."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.bars import Bar, executor
from benchmarks.gpu.aa import chosen
from benchmarks.gpu.requests import OVERRIDES
from tilewright.api import build_request
from tilewright.config import load
from tilewright.executors.local import LocalExecutor
from tilewright.problems.loader import parse_problem
from tilewright.records import Candidate, Comparison, Problem, SourceFile
from tilewright.scoring import bootstrap

DELTAS = (0.02, 0.05, 0.10)
LONG_US = 100.0
"""Only calls longer than this are delayed."""
PROBLEMS, WANTED = 6, 10
"""Problems that are delayed, and runs of each delay that the bar is about."""
CYCLES = (200_000, 2_000_000)
PLAIN = """import torch

CASES = [{"name": "one", "n": 4096}]
ENTRY = "work"


def inputs(case, generator):
    return (torch.randn(case["n"], generator=generator),)


def reference(x):
    return x + 1
"""


@dataclass(frozen=True)
class Sleep:
    """What a sleep on the device takes: so many microseconds a cycle, and so many at all."""

    us_per_cycle: float
    launch_us: float

    def cycles(self, us: float) -> int:
        """Return the cycles that make a call `us` longer."""
        return max(int((us - self.launch_us) / self.us_per_cycle), 0)


def _compared(local: LocalExecutor, problem: Problem, text: str, entry: str) -> Comparison | None:
    file = SourceFile(path="candidate.py", text=text)
    candidate = Candidate(language="torch", files=(file,), entry=entry)
    settings = load(overrides=OVERRIDES, environ={})
    report = local.evaluate(build_request(candidate, problem, settings))
    return report.comparisons[0] if report.comparisons else None


def calibrated(local: LocalExecutor) -> Sleep:
    """Measure sleeps of two lengths in this very lease."""
    problem = parse_problem(PLAIN, "delta/plain", "work", "delta")
    text = "import torch\n\n\ndef work(x):\n    torch.cuda._sleep({})\n    return x + 1\n"
    found = [_compared(local, problem, text.format(cycles), "work") for cycles in CYCLES]
    short, long = (item for item in found if item is not None)
    rate = (long.candidate.median_us - short.candidate.median_us) / (CYCLES[1] - CYCLES[0])
    slept = short.candidate.median_us - short.baseline_timing.median_us
    return Sleep(rate, slept - CYCLES[0] * rate)


def run(path: Path, budget_s: float, out: Path) -> list[Bar]:
    """Delay each long problem by each delta, again and again until there are enough."""
    rows: list[dict[str, object]] = []
    stop = time.monotonic() + budget_s
    with executor() as local:
        sleep = calibrated(local)
        print(asdict(sleep), flush=True)
        problems = _long(local, path)
        while problems and len(rows) < WANTED * len(DELTAS) and time.monotonic() < stop:
            for name, problem, code, base_us in problems:
                for delta in DELTAS:
                    rows.append(_delayed(local, sleep, name, problem, code, base_us, delta))
                    print(rows[-1], flush=True)
    (out / "gpu_delta.json").write_text(json.dumps(rows), encoding="utf-8")
    return [_bar(rows, delta) for delta in DELTAS]


def _long(local: LocalExecutor, path: Path) -> list[tuple[str, Problem, str, float]]:
    """Return problems whose reference takes long enough, with that time."""
    found = []
    for row in chosen(path, 48):
        name, code = f"level{row['level']}-{row['problem_id']}", str(row["code"])
        problem = parse_problem(code, f"kernelbench/{name}", name, name)
        item = _compared(local, problem, f"{code}\n\nModelNew = Model\n", "ModelNew")
        if item is not None and LONG_US < item.baseline_timing.median_us < 1000:
            found.append((name, problem, code, item.baseline_timing.median_us))
        if len(found) == PROBLEMS:
            break
    return found


def _delayed(
    local: LocalExecutor,
    sleep: Sleep,
    name: str,
    problem: Problem,
    code: str,
    base_us: float,
    delta: float,
) -> dict[str, object]:
    wait = f"        torch.cuda._sleep({sleep.cycles(delta * base_us)})\n"
    text = f"{code}\n\nclass ModelNew(Model):\n    def forward(self, *args):\n{wait}"
    text += "        return super().forward(*args)\n"
    item = _compared(local, problem, text, "ModelNew")
    seen = None if item is None else 1 / item.speedup - 1
    return {"problem": name, "base_us": base_us, "delta": delta, "seen": seen}


def _bar(rows: list[dict[str, object]], delta: float) -> Bar:
    """Return whether the median of what was seen is within a point of what was added."""
    seen = [float(str(row["seen"])) for row in rows if row["delta"] == delta and row["seen"]]
    middle = bootstrap.median(seen) if seen else math.nan
    held = len(seen) >= WANTED and abs(middle - delta) <= 0.01
    title = f"delta: +{delta:.0%} on the device"
    return Bar(title, "within 1 point of 10", f"{middle:+.2%} of {len(seen)}", held)
