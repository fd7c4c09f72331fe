"""Bar: the pytest plug-in fails on a kernel slowed by 10 %, and never on the same kernel.

The project is that of `problems new`, and the condition `case_high>=0.98`. The slow kernel spends a
tenth of the time of each of its calls once more. A test that is skipped counts as neither.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.bars import ROOT, Bar
from tilewright.problems.template import write_new

RUNS = 20
SLOWER = """

import time

fast = mine


def mine(x):
    begun = time.perf_counter()
    found = fast(x)
    end = 1.1 * time.perf_counter() - 0.1 * begun
    while time.perf_counter() < end:
        pass
    return found
"""
TESTS = """
import pytest

CONDITION = {"problem": "problem.py", "require": "case_high>=0.98", "baseline": "previous.py"}


@pytest.mark.kernel(**CONDITION)
def test_same(kernel):
    pass


@pytest.mark.kernel(**CONDITION, candidate="slower.py")
def test_slower(kernel):
    pass


@pytest.mark.kernel(problem="random_problem.py", candidate="candidate.py")
def test_unjudged(kernel):
    pass
"""
RANDOM = '''"""A reference that nothing can be judged against."""

import torch

ENTRY = "mine"
CASES = [{"name": "one", "rows": 3}]


def inputs(case, generator):
    return (torch.randn(case["rows"], 8, generator=generator),)


def reference(x):
    return x + torch.rand_like(x)
'''
_OUTCOME = re.compile(r"::(test_\w+) (PASSED|FAILED|SKIPPED|ERROR)")


def _session(folder: Path) -> tuple[dict[str, str], str]:
    """Run the tests once; return the outcome of each, and what pytest printed."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        "TILEWRIGHT_HOME": str(folder / "home"),
        "TILEWRIGHT_HOST": "never",
    }
    command = [sys.executable, "-m", "pytest", "-v", "-rsf", "-p", "no:cacheprovider", "mine"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return dict(_OUTCOME.findall(done.stdout)), done.stdout


def run(only: str = "") -> list[Bar]:  # noqa: ARG001 - one measurement
    """Return the bars: of the same kernel, of the slower one, and of an unjudged one."""
    seen: list[dict[str, str]] = []
    text = ""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_new("mine", folder)
        source = (folder / "mine" / "candidate.py").read_text(encoding="utf-8")
        for name, content in (
            ("previous.py", source),
            ("slower.py", source + SLOWER),
            ("random_problem.py", RANDOM),
            ("test_mine.py", TESTS),
        ):
            (folder / "mine" / name).write_text(content, encoding="utf-8")
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        for number in range(RUNS):
            outcomes, text = _session(folder)
            seen.append(outcomes)
            told = ("FAILED", "ERROR", "SKIPPED")
            lines = [line for line in text.splitlines() if line.startswith(told)]
            print(number, outcomes, *(line[:200] for line in lines), sep="\n  ", flush=True)
    same = sum(item.get("test_same") == "PASSED" for item in seen)
    slower = sum(item.get("test_slower") == "FAILED" for item in seen)
    skipped = sum(item.get("test_unjudged") == "SKIPPED" for item in seen)
    reason = "nondeterministic_reference" in text
    return [
        Bar("pytest: the same kernel", f"passes {RUNS} of {RUNS}", f"{same}", same == RUNS),
        Bar("pytest: 10 % slower", f"fails {RUNS} of {RUNS}", f"{slower}", slower == RUNS),
        Bar(
            "pytest: unjudged",
            "skipped with the reason",
            f"{skipped} of {RUNS} skipped, the reason is {'' if reason else 'not '}named",
            skipped == RUNS and reason,
        ),
    ]
