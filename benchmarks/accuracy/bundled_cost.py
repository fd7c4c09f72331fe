"""Bar: seconds of an evaluation with the default settings, over the bundled problems.

Each bundled reference is evaluated against itself by the command `tilewright bench`. Another
checkout with an environment in `.venv` may be the baseline:
`python -m benchmarks.accuracy.bundled_cost --baseline TREE`. Then both trees run in turn, and the
bar is the ratio of their seconds. The check of a problem counts apart: it is made once and stored.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bars import ROOT, Bar, finish
from tilewright.scoring.bootstrap import median

MAX_RATIO, MAX_LARGE_RATIO = 1.15, 1.60
"""Most seconds of an evaluation, as a ratio to the baseline: the median over all problems, and that
of the problems with large inputs."""
MAX_MEDIAN_S = 8.0
"""Most seconds without a baseline. Two shared cores take about 5 s; the rest allows for load."""
LARGE_BYTES = 24 << 20
"""Inputs and outputs of one call: 16 MiB of inputs with outputs of half their size."""
ONCE = ("prepare_judge", "start_judge", "spawn", "check_problem", "build", "ceilings")
"""Stages that only the first evaluation of a process, problem or device has; `spawn` is the name of
the first two at a9ccb78."""
ORDER = (1, 0, 0, 1)
"""An ABBA block: the baseline, this tree twice, the baseline."""


@dataclass(frozen=True)
class Cost:
    """Seconds of one evaluation without stages that happen once, and the bytes of its calls."""

    problem: str
    seconds: float
    moved_bytes: int


def costs(tree: Path) -> list[Cost]:
    """Evaluate the bundled references with the program of a tree."""
    with tempfile.TemporaryDirectory(prefix="cost-") as folder:
        command = [str(tree / ".venv" / "bin" / "tilewright"), "bench", "bundled"]
        command += ["--candidates", "reference", "--out", folder]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{tree} cannot be measured: {done.stderr[-1000:]}")
        return costs_of_runs(Path(folder))


def costs_of_runs(folder: Path) -> list[Cost]:
    """Return the costs of all evaluations of the runs in a folder."""
    return [_cost(path) for path in sorted(folder.glob("*/reports/*.json"))]


def _cost(path: Path) -> Cost:
    report = json.loads(path.read_text(encoding="utf-8"))
    stages = {stage["name"]: stage["wall_s"] for stage in report["stages"]}
    seconds = stages["total"] - sum(stages.get(name, 0.0) for name in ONCE)
    moved = max((item["moved_bytes"] for item in report["comparisons"]), default=0)
    return Cost(report["request"]["problem"]["id"], seconds, moved)


def run(only: str = "", *, baseline: Path | None = None) -> list[Bar]:
    """Measure this tree, and in turn with it the baseline; return the bars."""
    trees = [ROOT, baseline or ROOT]
    found: list[list[Cost]] = [[], []]
    for which in ORDER if baseline else (0,):
        made = [cost for cost in costs(trees[which]) if only in cost.problem]
        found[which] += made
        print(f"{trees[which]}: {sum(cost.seconds for cost in made):.1f} s", flush=True)
    ours, theirs = map(by_problem, found)
    if baseline is None:
        seen = median([seconds for seconds, _ in ours.values()])
        wanted = f"<= {MAX_MEDIAN_S:g} s"
        return [Bar("cost of an evaluation", wanted, f"{seen:.1f} s", seen <= MAX_MEDIAN_S)]
    ratios = {name: ours[name][0] / theirs[name][0] for name in ours}
    for name, ratio in ratios.items():
        print(f"  {name:28} {theirs[name][0]:6.2f} s -> {ours[name][0]:6.2f} s  x{ratio:.2f}")
    large = [ratios[name] for name in ours if ours[name][1] >= LARGE_BYTES]
    return [
        _bar("median ratio", list(ratios.values()), MAX_RATIO, ratios),
        _bar("large inputs, median ratio", large, MAX_LARGE_RATIO, ratios),
    ]


def _bar(name: str, ratios: Sequence[float], most: float, details: dict[str, float]) -> Bar:
    seen = median(ratios)
    text = f"{seen:.2f} of {len(ratios)} problems"
    return Bar(f"cost of an evaluation: {name}", f"<= {most:g}", text, seen <= most, dict(details))


def by_problem(made: list[Cost]) -> dict[str, tuple[float, int]]:
    """Return the mean seconds and the bytes of each problem."""
    names = dict.fromkeys(cost.problem for cost in made)
    groups = {name: [cost for cost in made if cost.problem == name] for name in names}
    return {
        name: (sum(cost.seconds for cost in group) / len(group), group[0].moved_bytes)
        for name, group in groups.items()
    }


def main() -> int:
    """Run the bar and print its rows; return 1 if one is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--baseline", type=Path, help="another checkout with .venv")
    parser.add_argument("--match", default="", help="only problems whose name contains this")
    options = parser.parse_args()
    return finish(run(options.match, baseline=options.baseline and options.baseline.resolve()))


if __name__ == "__main__":
    sys.exit(main())
