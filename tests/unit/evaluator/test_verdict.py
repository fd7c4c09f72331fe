"""The verdict: evidence becomes a consistent report."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.evaluator.timing.test_case_timings import times
from tests.unit.records.test_validation import REQUEST
from tilewright.evaluator.context import EvaluationContext
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.timing.calibration import Calibration
from tilewright.evaluator.timing.case_timings import CallSize
from tilewright.evaluator.timing.host_variation import HOST_SIGMA
from tilewright.evaluator.verdict import CorrectnessObservations, Observations, build_report
from tilewright.records import (
    Baseline,
    Correct,
    EvalReport,
    Failed,
    Incorrect,
    Label,
    Rejected,
    Rules,
)
from tilewright.scoring.process_replicates import NORMAL_95
from tilewright.wire.names import OutputMemory

ROOT = "ab" * 16
EXACT = Calibration((0.0,) * 4, measured=True)
Judge = Callable[..., EvalReport]


@pytest.fixture
def judged(tmp_path: Path) -> Iterator[Judge]:
    """Yield a function that writes a report over what was collected."""
    cores = os.sched_getaffinity(0)
    host = DeviceHost(tmp_path)

    def write(
        observations: Observations | None = None,
        outcome: Any = None,
        calibration: Calibration = EXACT,
        checks: tuple[str, ...] | None = None,
        **request: Any,
    ) -> EvalReport:
        asked = REQUEST.model_copy(update=request)
        context = EvaluationContext(host, asked, ROOT, lambda *_: None, lambda: None)
        return build_report(
            context,
            observations or Observations(),
            outcome or Correct(),
            calibration,
            checks=checks,
        )

    yield write
    host.close()
    os.sched_setaffinity(0, cores)


def timed(eager_s: float, candidate_s: float, case: str = "case", **more: Any) -> Any:
    made = times([eager_s] * 16, [candidate_s] * 16, **more)
    made.case = case
    return made


def test_a_candidate_without_findings_is_correct_and_has_no_speedup(judged):
    made = judged()

    assert (made.verdict, made.speedup, made.findings, made.labels) == ("correct", None, (), ())
    assert (made.seed, made.request) == (ROOT, REQUEST)
    assert made.environment.device == "cpu"
    assert {"python", "torch"} <= set(made.environment.versions)
    assert EvalReport.from_json(made.to_json()) == made


def test_a_decisive_finding_rejects_and_is_cited(judged):
    seen = CorrectnessObservations(mutated=["input 0"] * 2, misplaced=[OutputMemory.INPUT])
    made = judged(Observations(correctness=seen))

    assert made.verdict == "rejected"
    assert isinstance(made.outcome, Rejected)
    assert [item.code for item in made.outcome.findings] == ["input_mutation", "aliased_output"]
    assert made.findings[0].evidence == {"overwritten": ["input 0"]}


def test_a_note_does_not_reject_a_candidate(judged):
    made = judged(
        Observations(correctness=CorrectnessObservations(mutated=["input 0"])), protocol="official"
    )

    assert made.verdict == "correct"
    assert [item.weight for item in made.findings] == ["note"]


@pytest.mark.parametrize(
    "outcome",
    [
        Failed(stage="timing", reason="crash", message="m"),
        Incorrect(kind="values", case="c", message="m"),
    ],
)
def test_a_finding_softens_no_other_verdict(judged, outcome):
    made = judged(
        Observations(
            correctness=CorrectnessObservations(mutated=["input 0"]),
            times=[timed(2e-3, 1e-3)],
        ),
        outcome,
    )

    assert made.outcome == outcome
    assert made.findings
    assert made.speedup is None
    assert made.comparisons[0].speedup == pytest.approx(2.0)


def test_rules_may_deny_a_label(judged):
    observations = Observations(labels=[Label(name="not_timed", detail="one core only")])
    rules = Rules(deny_labels=("not_timed",))
    made = judged(observations, rules=rules)

    assert made.verdict == "rejected"
    assert made.findings[0].check == "rules"
    assert "one core only" in made.findings[0].summary
    assert judged(observations).verdict == "correct"


def test_checks_can_be_run_alone(judged):
    observations = Observations(correctness=CorrectnessObservations(mutated=["input 0"]))

    assert judged(observations, checks=("inputs",)).verdict == "rejected"
    assert judged(observations, checks=("unused_kernels", "weights")).verdict == "correct"
    assert judged(observations, checks=()).findings == ()


def test_observations_of_timed_calls_are_evidence(judged):
    mutated = timed(2e-3, 1e-3)
    mutated.memory.mutated = ["input 1"]
    idle = timed(2e-3, 1e-3)
    idle.launches = [0, 0]
    rules = Rules(require_custom_kernel=True)

    assert judged(Observations(times=[mutated])).verdict == "rejected"
    unused = Observations(times=[idle], right_when_suppressed=True)
    assert judged(unused, rules=rules).verdict == "rejected"
    assert judged(Observations(times=[idle])).verdict == "correct"


def test_work_outside_the_calls_beyond_the_baselines_is_evidence(judged):
    working = timed(2e-3, 1e-3)
    working.untimed_cpu_s = {"eager": [1e-4] * 16, "candidate": [5e-3] * 16}
    alike = timed(2e-3, 1e-3)
    alike.untimed_cpu_s = {"eager": [5e-3] * 16, "candidate": [5e-3] * 16}
    seldom = timed(2e-3, 1e-3)
    seldom.untimed_cpu_s = {"eager": [0.0] * 16, "candidate": [0.0] * 13 + [5e-3] * 3}

    assert judged(Observations(times=[working])).verdict == "rejected"
    assert judged(Observations(times=[alike])).verdict == "correct"
    assert judged(Observations(times=[seldom])).verdict == "correct"


def test_disturbing_the_baseline_in_the_largest_case_is_evidence(judged):
    small, large = timed(2e-3, 1e-3, "small"), timed(2e-2, 1e-2, "large")
    large.disturbed = [0.5] * 16

    assert judged(Observations(times=[small, large])).verdict == "rejected"


def test_the_speed_up_is_the_geometric_mean_over_cases(judged):
    cases = [timed(2e-3, 1e-3, "one"), timed(8e-3, 1e-3, "two")]
    made = judged(Observations(times=cases))

    assert made.speedup == pytest.approx(4.0)
    assert made.speedup_low == pytest.approx(4.0)
    assert [item.case for item in made.comparisons] == ["one", "two"]


def test_an_error_that_cases_share_does_not_shrink_with_their_number(judged):
    sigma = Calibration((0.1,) * 4, measured=True)
    one = judged(Observations(times=[timed(2e-3, 1e-3)]), calibration=sigma)
    four = judged(
        Observations(times=[timed(2e-3, 1e-3, str(n)) for n in range(4)]), calibration=sigma
    )

    assert one.speedup_low == pytest.approx(four.speedup_low, rel=1e-3)
    assert one.speedup_high == pytest.approx(2 * 1.2165, rel=1e-3)


def test_memory_bound_cases_get_the_sigma_of_their_class(judged):
    sigma = Calibration((0.0, 0.0, 0.0, 0.1), measured=True)
    computing, streaming = timed(2e-3, 1e-3, "computing"), timed(2e-3, 1e-3, "streaming")
    computing.size, streaming.size = CallSize(1 << 20), CallSize(64 << 20)
    made = judged(Observations(times=[computing, streaming]), calibration=sigma)
    alone = judged(Observations(times=[streaming]), calibration=sigma)

    assert [item.speedup_low for item in made.comparisons] == pytest.approx([2.0, 2 / 1.2165], 1e-3)
    assert [item.moved_bytes for item in made.comparisons] == [1 << 20, 64 << 20]
    # In the summary the mean of both classes' errors, not the larger of them.
    assert made.speedup_low == pytest.approx(2 / 1.1029, rel=1e-3)
    assert alone.speedup_low == pytest.approx(2 / 1.2165, rel=1e-3)


def test_cpu_work_outside_the_timed_calls_gives_no_speedup(judged):
    hiding = timed(2e-3, 1e-4, outside=[2e-3] * 16)
    made = judged(Observations(times=[hiding]))

    assert made.verdict == "rejected"
    assert made.comparisons[0].speedup == pytest.approx(1.0, abs=0.02)


def test_the_summary_is_against_the_first_baseline(judged):
    baselines = (Baseline(name="compile", kind="compile"), Baseline(name="eager", kind="eager"))
    case = times([2e-3] * 16, [1e-3] * 16, compile=[3e-3] * 16)
    made = judged(Observations(times=[case]), baselines=baselines)

    assert made.speedup == pytest.approx(3.0)
    assert {item.baseline: round(item.speedup, 6) for item in made.comparisons} == {
        "compile": 3.0,
        "eager": 2.0,
    }


def test_the_variation_between_hosts_does_not_shrink_with_the_number_of_cases(judged):
    def waiting(case: str) -> Any:
        made = timed(2e-3, 1e-3, case)
        made.on_device, made.gpu.early = True, 16
        return made

    widths = []
    for names in (("one",), ("one", "two", "three", "four")):
        made = judged(Observations(times=[waiting(name) for name in names]))
        widths.append(math.log(made.speedup / made.speedup_low))
    assert widths == pytest.approx([NORMAL_95 * HOST_SIGMA] * 2, rel=1e-3)


def test_published_rules_give_a_mean_without_an_interval(judged):
    cases = [timed(2e-3, 1e-3, "one"), timed(8e-3, 1e-3, "two")]
    made = judged(Observations(times=cases), protocol="official")

    assert made.speedup == pytest.approx(4.0)
    assert (made.speedup_low, made.speedup_high) == (None, None)


def test_short_noisy_and_uncalibrated_comparisons_are_labelled(judged):
    noisy = times([2e-3, 2e-3, 4e-3, 4e-3] * 8, [1e-3] * 32)
    short = timed(5e-5, 4e-5, "brief")
    default = Calibration((0.0,) * 4, measured=False)
    made = judged(Observations(times=[noisy, short]), calibration=default)

    assert made.comparisons[0].labels == ("uncalibrated", "wide_interval")
    assert made.comparisons[1].labels[:2] == ("uncalibrated", "short_call")
    assert judged(Observations(times=[timed(2e-3, 1e-3)])).comparisons[0].labels == ()


def test_a_case_that_was_wrong_or_not_timed_has_no_comparison(judged):
    wrong, empty = timed(2e-3, 1e-3), times([], [])
    wrong.wrong = ["at [0]: expected 1, got 2"]
    made = judged(Observations(times=[wrong, empty]))

    assert made.comparisons == ()
    assert made.speedup is None
    assert "incorrect_when_timed" in [item.code for item in made.findings]


def test_a_baseline_that_was_not_timed_gives_no_summary(judged):
    baselines = (Baseline(name="compile", kind="compile"),)

    assert judged(Observations(times=[timed(2e-3, 1e-3)]), baselines=baselines).speedup is None
