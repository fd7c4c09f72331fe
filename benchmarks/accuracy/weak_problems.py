"""KernelBench problems that accept an answer without work: our list and the published lists.

`python -m benchmarks.accuracy.weak_problems LINT.json` reads the output of
`tilewright problems lint kernelbench --json`. The lists cover 239 of 250 problems of the
repository's later version, on a CPU with batches of at most four. docs/lab explains the differences
from version 0.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.bars import Bar, finish

Places = dict[int, set[int]]
NOT_MEASURED: Places = {1: {5, 7, 9, 11, 57, 63, 87, 100}, 3: {31, 48, 49}}
ZEROS: dict[str, Places] = {
    "0.0001": {1: {23, 37}, 2: {9, 23, 38, 80, 83}},
    "0.01": {1: {23, 37, 39, 53}, 2: {9, 23, 38, 66, 80, 83, 84, 99}},
}
CONSTANT: dict[str, Places] = {
    "0.0001": {1: {23, 37}, 2: {9, 23, 38, 80, 83, 36, 42, 65}},
    "0.01": {
        1: {4, 6, 23, 37, 39, 49, 53, 94, 95, 96, 98},
        2: {8, 9, 22, 23, 36, 38, 42, 45, 49, 55, 56, 58, 64, 65, 66, 80, 83, 84, 89, 99},
        3: {46, 47},
    },
}
STALE: dict[str, Places] = {
    "0.0001": {**CONSTANT["0.0001"], 3: {3, 7, 11, 12, 18, 28, 35}},
    "0.01": {
        1: CONSTANT["0.01"][1],
        2: CONSTANT["0.01"][2] | {10, 44, 67, 91, 96},
        3: {46, 47, 3, 4, 5, 7, 11, 12, 18, 28, 35},
    },
}
PUBLISHED = {"zeros": ZEROS, "constant": CONSTANT, "another input's output": STALE}


def bars(rows: list[dict[str, Any]]) -> list[Bar]:
    """Return a bar for each answer and tolerance: how many problems accept it, and which differ."""
    found = []
    for answer, lists in PUBLISHED.items():
        for tolerance, places in lists.items():
            theirs = {(level, number) for level, many in places.items() for number in many}
            ours = {_place(row) for row in rows if _passes(row, tolerance, answer)}
            known = {_place(row) for row in rows if row["cases"]} - {
                (level, number) for level, many in NOT_MEASURED.items() for number in many
            }
            more, less = sorted((ours & known) - theirs), sorted((theirs & known) - ours)
            seen = f"{len(ours & known)}; only here {_names(more)}; only there {_names(less)}"
            name = f"{answer} at {tolerance}"
            found.append(Bar(name, str(len(theirs & known)), seen, not more and not less))
    strict = sorted(_place(row) for row in rows if row["weak"]["strict"])
    failed = [row["problem"] for row in rows if row["failed"]]
    found.append(Bar("unsound under `strict`", "stated", _names(strict), held=True))
    found.append(Bar("could not be linted", "none", ", ".join(failed) or "none", not failed))
    return found


def _passes(row: dict[str, Any], tolerance: str, answer: str) -> bool:
    cases = [case["official"].get(tolerance, ()) for case in row["cases"]]
    return bool(cases) and all(answer in names for names in cases)


def _place(row: dict[str, Any]) -> tuple[int, int]:
    level, _, number = row["problem"].rpartition("/level")[2].partition("-")
    return int(level), int(number)


def _names(places: list[tuple[int, int]]) -> str:
    return ", ".join(f"L{level} {number}" for level, number in places) or "none"


def main() -> int:
    """Print the table of a file; return 1 if the lists differ."""
    rows = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    return finish(bars(rows))


if __name__ == "__main__":
    sys.exit(main())
