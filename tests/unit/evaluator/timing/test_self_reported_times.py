"""Self-reported device times count within their band and never raise the lower end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.evaluator.timing.calibration import GPU_SHORT_US
from tilewright.evaluator.timing.case_timings import (
    SELF_REPORT_BAND_S,
    SELF_REPORT_SLACK_S,
    CaseTimes,
    GpuReadings,
    charged_times,
    corrected_times,
    is_short,
    undetectable_work_s,
)
from tilewright.evaluator.timing.speedup import compare_official, compare_strict

BLOCKS = 20
US = 1e-6


def times(eager: float, candidate: float, *, eager_said: float, candidate_said: float) -> CaseTimes:
    """Return times of a case whose calls all take the same, in microseconds."""
    calls = 2 * BLOCKS
    return CaseTimes(
        "one",
        total_s={"eager": [eager * US] * calls, "candidate": [candidate * US] * calls},
        untimed_cpu_s={"eager": [0.0] * calls, "candidate": [0.0] * calls},
        gpu=GpuReadings(
            self_reported_s={
                "eager": [eager_said * US] * calls,
                "candidate": [candidate_said * US] * calls,
            }
        ),
        blocks=BLOCKS,
        on_device=True,
    )


def test_honest_self_reported_times_remove_the_measurement_overhead():
    made = times(105, 55, eager_said=100, candidate_said=50)
    item = compare_strict(made, "eager", 0.0, ())
    assert item.speedup == pytest.approx(2.0)
    assert item.candidate.median_us == pytest.approx(50)
    assert item.speedup_low == pytest.approx(105 / 55)
    assert item.raw_us[0] == (105, 55, 55, 105)
    assert item.self_reported_us[0] == (100, 50, 50, 100)
    assert item.candidate.method == "cuda_events_trusted"


def test_an_implausibly_low_self_report_keeps_the_judges_time():
    made = times(105, 100, eager_said=100, candidate_said=50)
    assert corrected_times(made, "candidate") is made.total_s["candidate"]
    item = compare_strict(made, "eager", 0.0, ())
    assert item.speedup == pytest.approx(1.0)


def test_a_self_report_may_be_below_the_baselines_by_the_slack_only():
    just = 1 + SELF_REPORT_SLACK_S / US
    made = times(101, 101, eager_said=100, candidate_said=101 - just + 0.01)
    assert corrected_times(made, "candidate") is made.gpu.self_reported_s["candidate"]
    made = times(101, 101, eager_said=100, candidate_said=101 - just - 0.01)
    assert corrected_times(made, "candidate") is made.total_s["candidate"]


def test_a_self_report_above_the_judges_time_is_ignored():
    made = times(100, 100, eager_said=100, candidate_said=100 + SELF_REPORT_SLACK_S / US + 0.1)
    assert corrected_times(made, "candidate") is made.total_s["candidate"]


def test_a_baselines_self_report_counts_within_the_whole_band():
    band = SELF_REPORT_BAND_S / US
    made = times(100, 100, eager_said=100 - band + 0.1, candidate_said=100)
    assert corrected_times(made, "eager") is made.gpu.self_reported_s["eager"]
    made = times(100, 100, eager_said=100 - band - 0.1, candidate_said=100)
    assert corrected_times(made, "eager") is made.total_s["eager"]


def test_a_missing_or_zero_self_report_keeps_the_judges_times():
    made = times(100, 90, eager_said=100, candidate_said=90)
    made.gpu.self_reported_s["candidate"][3] = 0.0
    assert corrected_times(made, "candidate") is made.total_s["candidate"]
    made.gpu.self_reported_s.clear()
    assert charged_times(made, "eager") is made.total_s["eager"]


@given(
    eager=st.floats(5, 1e4),
    candidate=st.floats(5, 1e4),
    shares=st.tuples(st.floats(0.01, 2), st.floats(0.01, 2)),
)
def test_the_lower_end_is_never_above_that_of_the_judges_times_alone(eager, candidate, shares):
    made = times(
        eager, candidate, eager_said=eager * shares[0], candidate_said=candidate * shares[1]
    )
    item = compare_strict(made, "eager", 0.01, ())
    made.gpu.self_reported_s.clear()
    alone = compare_strict(made, "eager", 0.01, ())
    assert item.speedup_low <= alone.speedup_low * (1 + 1e-9)
    assert item.speedup_high >= alone.speedup_high * (1 - 1e-9)


def test_a_gpu_has_no_undetectable_work_and_short_calls_are_labelled():
    made = times(GPU_SHORT_US - 1, 5, eager_said=10, candidate_said=5)
    assert undetectable_work_s(made, "eager") == 0.0
    assert is_short(made, "eager")
    made = times(GPU_SHORT_US + 1, 5, eager_said=10, candidate_said=5)
    assert not is_short(made, "eager")


def test_the_official_protocol_names_its_own_clock():
    made = times(100, 50, eager_said=100, candidate_said=50)
    item = compare_official(made, "eager", ())
    assert item.speedup == pytest.approx(2.0)
    assert item.candidate.method == "cuda_events_candidate"
