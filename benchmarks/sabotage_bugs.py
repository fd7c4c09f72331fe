"""The bugs that `benchmarks/sabotage.py` plants in our own judge, and the tests that find them.

Each is one replacement in one file. Old texts are short, so that they survive reformatting, and
must stand exactly once in their file: where one does not, the bar says so by name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """One planted bug: what is replaced by what, and which tests must then fail."""

    name: str
    file: str
    """Under src/tilewright."""
    old: str
    new: str
    tests: tuple[str, ...]
    """Files or node ids, from the root of the repository."""


def planted(file: str, tests: str, *bugs: tuple[str, str, str, str]) -> tuple[Bug, ...]:
    """Return bugs of one file that tests of one file find: (name, old, new, test or "")."""
    return tuple(
        Bug(name, file, old, new, (f"{tests}::{test}" if test else tests,))
        for name, old, new, test in bugs
    )


JUDGE = "tests/unit/test_sabotage_judge.py"
PIPELINE = "tests/unit/test_sabotage_pipeline.py"
RULES = "tests/unit/test_sabotage_rules.py"
TIMING = "tests/unit/test_sabotage_timing.py"
TREE = "tests/processes/test_sabotage_tree.py"
COMPARISON = "tests/unit/test_comparison.py"
