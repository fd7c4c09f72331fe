"""Times beside a speed-up agree with it, whatever was measured."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import sample_reports as reports
from tilewright.records import Baseline, Comparison, EvalReport
from tilewright.scoring.benchmarks.kernelgym import runtimes
from tilewright.scoring.paired_times import geometric_mean_times, paired, paired_times
from tilewright.serve.kernelgym_schemas import _strict_answer

times = st.floats(1e-2, 1e9)
ratios = st.floats(1e-4, 1e4)


def drifted(case: str, baseline_us: float, candidate_us: float, speedup: float) -> Comparison:
    """Return a comparison whose medians have another quotient than its pairs."""
    made = reports.comparison(case, speedup, 0.02)
    return made.model_copy(
        update={
            "baseline_timing": reports.timing(baseline_us),
            "candidate": reports.timing(candidate_us),
        }
    )


@given(times, times, ratios)
def test_the_quotient_is_the_speedup_and_the_geometric_mean_stays(baseline, candidate, speedup):
    shown = paired(baseline, candidate, speedup)
    assert shown.baseline_us / shown.candidate_us == pytest.approx(speedup, rel=1e-12)
    product = math.log(shown.baseline_us) + math.log(shown.candidate_us)
    assert product == pytest.approx(math.log(baseline) + math.log(candidate), abs=1e-9)


@given(st.lists(st.tuples(times, times, ratios), min_size=1, max_size=4))
def test_means_over_cases_have_the_mean_speedup_as_quotient(rows):
    items = [drifted(str(n), *row) for n, row in enumerate(rows)]
    mean = geometric_mean_times(items)
    wanted = math.exp(sum(math.log(row[2]) for row in rows) / len(rows))
    assert mean.baseline_us / mean.candidate_us == pytest.approx(wanted, rel=1e-9)


def timed_report(rows: list[tuple[float, float, float]]) -> EvalReport:
    items = [drifted(str(n), *row) for n, row in enumerate(rows)]
    # Another baseline, listed first, takes no part in the report's speed-up.
    other = items[0].model_copy(update={"baseline": "compile"})
    speedup = math.exp(sum(math.log(item.speedup) for item in items) / len(items))
    made = reports.correct()
    baselines = (*made.request.baselines, Baseline(name="compile", kind="compile"))
    request = made.request.model_copy(update={"baselines": baselines})
    changes = {"comparisons": (other, *items), "speedup": speedup, "request": request}
    return made.model_copy(update=changes)


@given(st.lists(st.tuples(times, times, ratios), min_size=1, max_size=4))
def test_kernelgyms_three_fields_agree_exactly(rows):
    report = timed_report(rows)
    answer = _strict_answer(report)
    assert answer["speedup"] == answer["reference_runtime"] / answer["kernel_runtime"]
    assert answer["speedup"] == pytest.approx(report.speedup, rel=1e-9)


def test_medians_that_drifted_are_not_shown():
    item = drifted("a", 1150.0, 1000.0, 0.90)
    shown = paired_times(item)
    assert shown.baseline_us < shown.candidate_us
    assert item.baseline_timing.median_us > item.candidate.median_us


def test_without_a_speedup_kernelgym_gets_no_times():
    untimed = reports.correct().model_copy(update={"comparisons": (), "speedup": None})
    assert runtimes(untimed) is None
    answer = _strict_answer(untimed)
    fields = (answer.get(name, 0.0) for name in ("reference_runtime", "kernel_runtime", "speedup"))
    assert not any(fields)
