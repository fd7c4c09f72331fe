"""Which cases of a problem with many cases are timed."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.in_process_evaluator import a_request, timed
from tilewright.evaluator.pipeline.timing_stage import timed_cases
from tilewright.records import Case

CASES = [Case(name=f"case {number}") for number in range(24)]


@pytest.mark.parametrize("most", [1, 2, 3, 8, 23, 24, 99])
def test_the_largest_and_the_smallest_are_among_the_timed_cases(most):
    sizes = {case.name: (number * 7) % 24 for number, case in enumerate(CASES)}
    chosen = timed_cases(CASES, sizes, most)
    assert len(chosen) == min(most, len(CASES))
    assert chosen == [case for case in CASES if case in chosen]
    found = {sizes[case.name] for case in chosen}
    assert 23 in found
    assert most == 1 or 0 in found
    # The others lie between them, evenly.
    gaps = sorted(found)
    steps = [b - a for a, b in pairwise(gaps)]
    assert max(steps, default=0) - min(steps, default=0) <= 1


PROBLEM = """import torch

CASES = [{"name": "n4", "n": 4}, {"name": "n8", "n": 8}, {"name": "n32", "n": 32}]


def inputs(case, generator):
    return (torch.randn(case["n"], 8, generator=generator),)


def reference(x):
    return x.exp()
"""


def test_all_cases_are_checked_and_a_sample_is_timed(evaluator):
    request = a_request(PROBLEM, "def work(x):\n    return x.exp()\n", **timed())
    timing = request.timing.model_copy(update={"timed_cases": 2})
    report = evaluator.judge(request.model_copy(update={"timing": timing}))
    assert report.verdict == "correct", report.outcome
    assert [item.case for item in report.comparisons] == ["n4", "n32"]
    assert {"n4", "n8", "n32"} <= {item.case for item in report.cases}
    (label,) = [item for item in report.labels if item.name == "timed_sample"]
    assert "2 of 3 cases" in label.detail
