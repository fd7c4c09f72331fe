"""Bar: seconds of an evaluation with 1 GiB of inputs, as a ratio to those of another checkout.

`python -m benchmarks.gpu.large_inputs TREE` evaluates three references against themselves with this
tree and with TREE in turn. Neither needs to be installed: each finds its plug-ins by a folder that
this program makes. The check of a problem counts apart, and so does all that happens once.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from benchmarks.accuracy.bundled_cost import ORDER, Cost, by_problem, costs_of_runs
from benchmarks.bars import ROOT, Bar, finish
from benchmarks.gpu.requests import DEVICE
from tilewright.scoring.bootstrap import median

MAX_RATIO = 1.25
"""Most seconds, as a ratio to the other tree."""
PROBLEM = """import torch

CASES = [{{"name": "main", "rows": 16384, "cols": 16384}}]


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return {reference}
"""
REFERENCES = {"relu": "torch.relu(x)", "sum": "x.sum(-1)", "softmax": "torch.softmax(x, -1)"}
"""Outputs as large as the inputs, and small ones."""


def main() -> int:
    """Run the bar and print its rows; return 1 if it is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path, help="another checkout")
    trees = [ROOT, parser.parse_args().tree.resolve()]
    found: list[list[Cost]] = [[], []]
    with tempfile.TemporaryDirectory(prefix="large-inputs-") as folder:
        problems = _written(Path(folder))
        environments = [_environment(tree, Path(folder) / str(n)) for n, tree in enumerate(trees)]
        for which in ORDER:
            made = [cost for path in problems for cost in _costs(path, environments[which])]
            found[which] += made
            each = ", ".join(f"{cost.problem} {cost.seconds:.2f} s" for cost in made)
            print(f"{trees[which]}: {each}", flush=True)
    ours, theirs = map(by_problem, found)
    ratios = {name: ours[name][0] / theirs[name][0] for name in ours}
    for name, ratio in ratios.items():
        print(f"  {name:12} {theirs[name][0]:6.2f} s -> {ours[name][0]:6.2f} s  x{ratio:.2f}")
    seen = median(list(ratios.values()))
    text = f"{seen:.2f} of {len(ratios)} problems"
    return finish([Bar("cost of 1 GiB of inputs", f"<= {MAX_RATIO}", text, seen <= MAX_RATIO)])


def _written(folder: Path) -> list[Path]:
    paths = []
    for name, reference in REFERENCES.items():
        paths.append(folder / f"{name}.py")
        paths[-1].write_text(PROBLEM.format(reference=reference), encoding="utf-8")
    return paths


def _environment(tree: Path, folder: Path) -> dict[str, str]:
    """Return the environment of a tree's program, with its entry points in a folder."""
    described = folder / "tilewright-0.1.0.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: tilewright\nVersion: 0.1.0\n")
    project = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [
        line
        for group, entries in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()))
    ]
    (described / "entry_points.txt").write_text("\n".join(lines))
    others = [part for part in sys.path if part and "tilewright" not in part and part != str(ROOT)]
    paths = os.pathsep.join([str(folder), str(tree / "src"), *others])
    return {**os.environ, "PYTHONPATH": paths, "TILEWRIGHT_HOME": str(folder / "home")}


def _costs(problem: Path, environment: dict[str, str]) -> list[Cost]:
    with tempfile.TemporaryDirectory(prefix="cost-") as folder:
        command = [sys.executable, "-m", "tilewright", "bench", str(problem)]
        command += ["--candidates", "reference", "--device", DEVICE, "--out", folder]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{problem.name} cannot be measured: {done.stderr[-1000:]}")
        return costs_of_runs(Path(folder))


if __name__ == "__main__":
    sys.exit(main())
