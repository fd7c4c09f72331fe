"""Compare the number of problems in clones with the published numbers: `make bench-counts`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from benchmarks.bars import Bar, finish
from tilewright.errors import ProblemError
from tilewright.problems.imported_sets import problem_set
from tilewright.problems.sets.base import json_rows
from tilewright.problems.sets.kernelbenchx import RECORDS, category_of
from tilewright.scoring.summary import group_of

KERNELBENCH = {"level1": 100, "level2": 100, "level3": 50, "level4": 20}
TRITONBENCH = {"g": 184, "t": 166}
CATEGORIES = {
    "Fusion": 60,
    "Math": 36,
    "LinearAlgebra": 17,
    "Activation": 10,
    "MatrixMultiply": 10,
    "Reduce": 6,
    "Index": 6,
    "Loss": 6,
    "Quantization": 6,
    "Normalization": 5,
    "Optimizer": 5,
    "SpatialOps": 3,
    "Convolution": 2,
    "Random": 2,
    "Pooling": 2,
}
DIFFICULTIES = {1: 20, 2: 42, 3: 59, 4: 50, 5: 5}
"""KernelBench-X by category and by difficulty (arXiv 2605.04956)."""


def _bar(name: str, wanted: object, seen: object) -> Bar:
    return Bar(name, str(wanted), str(seen), wanted == seen)


def run(folder: Path) -> list[Bar]:
    """Return a bar for each benchmark in the folder, or for the folder itself."""
    bars = []
    for place in (folder, *sorted(item for item in folder.iterdir() if item.is_dir())):
        for name, wanted in (("kernelbench", KERNELBENCH), ("tritonbench", TRITONBENCH)):
            try:
                found = problem_set(name).read(place, "counted")
            except ProblemError:
                continue
            counted = dict(Counter(group_of(item.id) for item in found.problems))
            bars.append(_bar(f"{name} in {place.name}", wanted, counted))
            for line in found.skipped[:5]:
                print(f"left out: {line}")
    for path in sorted(folder.rglob(RECORDS)):
        rows = [row for _, row in json_rows(path, [])]
        counted = dict(sorted(Counter(category_of(row) for row in rows).items()))
        bars.append(_bar("kernelbenchx: categories", dict(sorted(CATEGORIES.items())), counted))
        levels = dict(sorted(Counter(row["difficulty"] for row in rows).items()))
        bars.append(_bar("kernelbenchx: difficulties", DIFFICULTIES, levels))
    return bars


def main() -> int:
    """Print the table; return 1 if a count differs or the folder has no benchmark."""
    parser = argparse.ArgumentParser(prog="make bench-counts DIR=", description=__doc__)
    parser.add_argument("folder", type=Path, help="a clone, or a folder of clones")
    folder = parser.parse_args().folder
    if not folder.is_dir():
        parser.error(f"{folder} is no folder")
    bars = run(folder)
    if not bars:
        print(f"{folder}: no benchmark in it")
        return 1
    return finish(bars)


if __name__ == "__main__":
    sys.exit(main())
