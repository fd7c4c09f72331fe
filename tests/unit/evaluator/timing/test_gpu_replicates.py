"""When a difference on a GPU is looked at in more processes, and how far these differ."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from tilewright.evaluator.timing.calibration import GPU_DEFAULT, planned_replicates
from tilewright.evaluator.timing.case_timings import CaseTimes
from tilewright.evaluator.timing.replicate_policy import DEFAULT_POLICY
from tilewright.evaluator.timing.rounds import PlannedCase, Rounds, has_prior_work
from tilewright.evaluator.timing.speedup import between_process_sigma, compare_strict
from tilewright.records import Case, Comparison, TimingPlan
from tilewright.scoring.process_replicates import MAX_REPLICATES

NAMES = ["eager", "candidate"]


def apart_by(shift: float, starts: list[int], call_s: float = 1e-3) -> CaseTimes:
    """Return eight blocks in which the candidate is faster by the logarithm `shift`."""
    times = CaseTimes("one", on_device=True, blocks=8, replicate_starts=starts)
    times.total_s = {"eager": [math.exp(shift) * call_s] * 16, "candidate": [call_s] * 16}
    return times


def scattered(times: CaseTimes) -> CaseTimes:
    """Have the blocks scatter so far that no interval excludes 1."""
    swing = [1.3, 1.3, 1 / 1.3, 1 / 1.3] * 4
    theirs = times.total_s["eager"]
    times.total_s["eager"] = [call * each for call, each in zip(theirs, swing, strict=True)]
    return times


@pytest.mark.parametrize(
    ("pairs", "judged", "profiled", "past"),
    [
        (1, True, False, False),
        (2, True, False, True),
        (2, False, False, False),
        (1, False, True, True),
    ],
)
def test_short_calls_are_not_timed_in_a_process_that_ran_other_work(pairs, judged, profiled, past):
    runner: Any = SimpleNamespace(judged=judged, profiled=profiled)
    assert has_prior_work(runner, pairs) is past


@pytest.mark.reads_settings
@pytest.mark.parametrize(
    ("ratio", "again"),
    [(1.0, False), (1.06, True), (0.94, True), (1.4, False), (0.5, False), (1.02, True)],
)
@pytest.mark.parametrize(("pairs", "more"), [(1, 2), (2, 2), (2, 1)])
def test_on_a_gpu_a_difference_that_may_be_noise_is_replicated(pairs, more, ratio, again):
    request = SimpleNamespace(timing=TimingPlan(extra_replicates=more))
    context = SimpleNamespace(request=request)
    pool: Any = SimpleNamespace(deadline=math.inf, context=context)
    times = CaseTimes("one", on_device=True, blocks=8, replicate_starts=[0, 4][:pairs])
    times.total_s = {"eager": [ratio * 1e-3] * 16, "candidate": [1e-3] * 16}
    rounds = Rounds(pool, GPU_DEFAULT, NAMES, None, request.timing, math.inf)
    item = PlannedCase(Case(name="one"), times, pairs)
    assert rounds.needs_replicate(item, 0.1) is again

    # All of these exclude 1, and take twice as many.
    times.replicate_starts = list(range(pairs + 2 * more - 1))
    assert rounds.needs_replicate(item, 0.1) is again

    times.replicate_starts = list(range(pairs + 2 * more))
    assert not rounds.needs_replicate(item, 0.1)


def test_a_problem_whose_time_is_over_gets_no_unplanned_replicate():
    context = SimpleNamespace(request=SimpleNamespace(timing=TimingPlan()))
    pool: Any = SimpleNamespace(deadline=math.inf, context=context)
    item = PlannedCase(Case(name="one"), apart_by(0.06, [0, 4]), 2)
    fields = (pool, GPU_DEFAULT, NAMES, None, TimingPlan())
    assert Rounds(*fields, math.inf).needs_replicate(item, 0.1)
    assert not Rounds(*fields, 0.0).needs_replicate(item, 0.1)
    item.planned = 3
    assert Rounds(*fields, 0.0).needs_replicate(item, 0.1)


@pytest.mark.parametrize(("claimed", "again"), [(True, True), (False, False)])
def test_after_its_time_only_a_claim_gets_an_unplanned_replicate(claimed, again):
    context = SimpleNamespace(request=SimpleNamespace(timing=TimingPlan()))
    pool: Any = SimpleNamespace(deadline=math.inf, context=context)
    times = apart_by(0.06, [0, 4])
    item = PlannedCase(Case(name="one"), times if claimed else scattered(times), 2)
    fields = (pool, GPU_DEFAULT, NAMES, None, TimingPlan(), math.inf)
    assert Rounds(*fields).needs_replicate(item, 0.1)
    assert Rounds(*fields, claims_only_after=0.0).needs_replicate(item, 0.1) is again


@pytest.mark.parametrize(("starts", "again"), [([0, 2], True), ([0, 2, 4], False)])
def test_a_re_check_that_supports_no_claim_takes_the_configured_replicates(starts, again):
    times = scattered(apart_by(0.02, starts))
    assert DEFAULT_POLICY.may_be_noise(times, "eager", 0.02)
    assert DEFAULT_POLICY.needs_replicate(times, "eager", 0.02, 1, 2) is again


def test_replicates_stop_at_the_most_that_an_interval_can_use():
    claims = apart_by(0.04, list(range(MAX_REPLICATES - 1)))
    claims.total_s = {name: calls * 2 for name, calls in claims.total_s.items()}
    assert DEFAULT_POLICY.needs_replicate(claims, "eager", 0.03, 2, 8)
    claims.replicate_starts.append(MAX_REPLICATES - 1)
    assert DEFAULT_POLICY.may_be_noise(claims, "eager", 0.03)
    assert not DEFAULT_POLICY.needs_replicate(claims, "eager", 0.03, 2, 8)


@pytest.mark.parametrize(
    ("starts", "sigma", "shift", "again"),
    [
        ([0], 0.03, 0.262, True),
        ([0], 0.03, 0.263, False),
        ([0, 4], 0.03, 0.185, True),
        ([0, 4], 0.03, 0.186, False),
        ([0, 2, 4, 6], 0.03, 0.131, True),
        ([0, 2, 4, 6], 0.03, 0.132, False),
        # Four sigmas of a call that varies much are more than 30 %.
        ([0], 0.12, 0.47, True),
        ([0], 0.12, 0.49, False),
    ],
)
def test_the_noise_threshold_shrinks_with_more_agreeing_replicates(starts, sigma, shift, again):
    assert DEFAULT_POLICY.may_be_noise(apart_by(shift, starts), "eager", sigma) is again


@pytest.mark.parametrize(
    ("starts", "shift", "again"),
    [([0, 4], 0.105, True), ([0, 4], 0.107, False), ([0, 2, 4, 6], 0.076, False)],
)
def test_below_20_us_five_sigmas_are_the_only_noise_threshold(starts, shift, again):
    short = apart_by(shift, starts, call_s=14e-6)
    assert DEFAULT_POLICY.may_be_noise(short, "eager", 0.03) is again
    assert DEFAULT_POLICY.may_be_noise(apart_by(shift, starts), "eager", 0.03)


@pytest.mark.parametrize(
    ("sigma", "shift", "again"),
    [
        # Three quarters of sigma.
        (0.02, 0.0149, False),
        (0.02, 0.0151, True),
        # But no less than this,
        (0.005, 0.0074, False),
        (0.005, 0.0076, True),
        # and no more than that.
        (0.08, 0.0299, False),
        (0.08, 0.0301, True),
    ],
)
def test_a_difference_within_its_interval_is_replicated_unless_it_is_small(sigma, shift, again):
    assert DEFAULT_POLICY.may_be_noise(scattered(apart_by(shift, [0])), "eager", sigma) is again


def test_process_variation_on_a_gpu_is_a_fixed_time_and_a_share():
    assert GPU_DEFAULT.sigma(10.0, 0) == pytest.approx(math.hypot(0.035, 0.0085, 0.001))
    assert GPU_DEFAULT.sigma(5.0, 1 << 30) == pytest.approx(math.hypot(0.07, 0.0085, 0.001))
    assert GPU_DEFAULT.sigma(100.0, 0) == pytest.approx(math.hypot(0.0035, 0.0085, 0.001))


def test_beyond_100_us_process_variation_is_a_fixed_time_and_a_thousandth():
    wanted = math.hypot(0.35 / 400, 0.85 / 400, 0.001)
    assert GPU_DEFAULT.sigma(400.0, 0) == pytest.approx(wanted)
    assert GPU_DEFAULT.sigma(4000.0, 0, 400.0) == pytest.approx(wanted, rel=0.05)
    assert GPU_DEFAULT.sigma(1e6, 0) == pytest.approx(0.001, rel=1e-3)


def test_the_shorter_call_has_most_of_the_process_variation():
    noise = 0.35 / math.sqrt(2)
    wanted = math.hypot(noise / 20, noise / 2, 0.0085, 0.001)
    assert GPU_DEFAULT.sigma(20.0, 0, 2.0) == pytest.approx(wanted)
    assert GPU_DEFAULT.sigma(2.0, 0, 20.0) == pytest.approx(wanted)
    assert GPU_DEFAULT.sigma(20.0, 0, 20.0) == pytest.approx(GPU_DEFAULT.sigma(20.0, 0))

    times = CaseTimes("one", on_device=True, blocks=2)
    times.total_s = {"eager": [20e-6] * 4, "candidate": [2e-6] * 4}
    assert between_process_sigma(times, "eager", GPU_DEFAULT) == pytest.approx(wanted)


@pytest.mark.parametrize(("call_us", "pairs"), [(5.0, 2), (20.0, 2), (20.1, 1), (1e5, 1)])
def test_short_calls_take_two_replicates_on_a_gpu(call_us, pairs):
    assert planned_replicates(call_us, 1 << 30, on_gpu=True) == pairs


def half_of(found: Comparison) -> float:
    return math.log((found.speedup_high or 0) / (found.speedup_low or 0)) / 2


def test_four_agreeing_replicates_use_the_calibrated_sigma():
    found = compare_strict(apart_by(0.0, [0, 2, 4, 6]), "eager", 0.02, ())
    # 2.201 is Student's t of 11 degrees of freedom, of which the pairs' agreement brings 3.
    assert half_of(found) == pytest.approx(2.201 * 0.02 * math.sqrt(8 / 11) / 2, rel=1e-3)


def test_one_baseline_process_in_four_replicates_counts_once():
    times = apart_by(0.0, [0, 2, 4, 6])
    own = half_of(compare_strict(times, "eager", 0.02, ()))
    times.processes = {"eager": {1}, "candidate": {2, 3, 4, 5}}
    shared = half_of(compare_strict(times, "eager", 0.02, ()))
    # Half of the variance is divided by four, and half by one.
    assert (shared / own) ** 2 == pytest.approx((1 / 2 / 4 + 1 / 2) / (1 / 4))
