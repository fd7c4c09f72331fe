"""The roofline: least times, fractions, and the advice that follows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sample_reports import correct
from tilewright.evaluator.judge_client.gpu_messages import CaseMeasured
from tilewright.evaluator.pipeline.gpu_checks import record_workload
from tilewright.evaluator.verdict import Observations
from tilewright.records import (
    Ceilings,
    Comparison,
    EvalReport,
    KernelShape,
    LoopRemark,
    OperatorUse,
    Profile,
    Timing,
    Work,
)
from tilewright.scoring.bottlenecks import advice
from tilewright.scoring.report_text import engineering
from tilewright.scoring.roofline import least_us, roofline_points

CEILINGS = Ceilings(
    memory_bandwidth_bytes_per_s=4e12,
    flops_per_s={"fp32": 5e13, "tf32": 4e14, "fp16": 8e14, "bf16": 8e14},
)


def work(**changes: Any) -> Work:
    fields: dict[str, Any] = {
        "case": "main",
        "precision": "tf32",
        "moved_bytes": 40_000_000,
        "output_bytes": 20_000_000,
        "flops": 0,
        "peak_bytes": 0,
    }
    return Work(**{**fields, **changes})


def timing(us: float, **changes: Any) -> Timing:
    return Timing(
        median_us=us, low_us=us, high_us=us, samples=40, method="cuda_events_trusted", **changes
    )


def report(made: Work, candidate: Timing, reference: Timing, **changes: Any) -> EvalReport:
    comparison = Comparison(
        case=made.case,
        baseline="eager",
        candidate=candidate,
        baseline_timing=reference,
        speedup=reference.median_us / candidate.median_us,
        speedup_low=None,
        speedup_high=None,
        blocks=20,
        conclusion="faster",
    )
    fields = {"comparisons": (comparison,), "work": (made,), "ceilings": CEILINGS, **changes}
    return correct().model_copy(update=fields)


def test_a_case_that_moves_more_than_it_computes_is_limited_by_memory():
    least, limit = least_us(work(flops=1_000_000), CEILINGS)
    assert (limit, least) == ("memory", pytest.approx(10.0))


def test_a_case_that_computes_longer_than_it_moves_is_limited_by_compute():
    assert least_us(work(flops=8_000_000_000), CEILINGS) == (pytest.approx(20.0), "compute")
    slow = work(flops=8_000_000_000, precision="fp32")
    assert least_us(slow, CEILINGS) == (pytest.approx(160.0), "compute")


def test_work_without_an_operation_count_is_limited_by_memory():
    assert least_us(work(flops=None), CEILINGS) == (pytest.approx(10.0), "memory")


@given(st.integers(1, 10**12), st.integers(0, 10**15), st.sampled_from(["fp32", "tf32", "fp16"]))
def test_more_work_never_takes_less_time(moved, flops, precision):
    some = work(moved_bytes=moved, flops=flops, precision=precision)
    more = work(moved_bytes=2 * moved, flops=2 * flops, precision=precision)
    assert least_us(more, CEILINGS)[0] == pytest.approx(2 * least_us(some, CEILINGS)[0])


def test_shares_are_of_the_least_time():
    (light,) = roofline_points(report(work(), timing(12.5), timing(40.0)))
    assert light.candidate_share == pytest.approx(0.8)
    assert light.reference_share == pytest.approx(0.25)
    assert light.bytes_per_s == pytest.approx(3.2e12)
    assert light.flops_per_s is None


def test_advice_and_tables_name_one_time():
    """The median is 306 us; next to this speed-up the table shows another time."""
    made = report(work(), timing(306.0), timing(1000.0))
    (item,) = made.comparisons
    item = item.model_copy(update={"baseline_us": 900.0, "candidate_us": 323.0})
    made = made.model_copy(update={"comparisons": (item,)})
    (light,) = roofline_points(made)
    assert light.candidate_share == pytest.approx(light.least_us / 323.0)
    (said,) = advice(made)
    assert "it takes 323 us" in said


def test_without_ceilings_or_times_there_is_no_roofline():
    assert roofline_points(report(work(), timing(1.0), timing(1.0), ceilings=None)) == []
    assert roofline_points(report(work(), timing(1.0), timing(1.0), comparisons=())) == []
    assert advice(report(work(case="other"), timing(1.0), timing(1.0), comparisons=())) == []


def test_the_advice_names_the_limit_and_the_possible_gain():
    (said,) = advice(report(work(), timing(20.0), timing(40.0)))
    assert "limited by memory. 40 MB must be moved, which takes 10 us at the 4 TB/s" in said
    assert "50% of that speed (the baseline: 25%)" in said
    assert "2x faster" in said


def test_near_the_ceiling_little_gain_is_left_and_above_it_caches_helped():
    assert advice(report(work(), timing(11.0), timing(40.0)))[0].endswith("Little is left to win.")
    assert "Caches helped" in advice(report(work(), timing(8.0), timing(40.0)))[0]


def test_compute_is_named_with_its_precision():
    (said,) = advice(report(work(flops=8_000_000_000), timing(40.0), timing(40.0)))
    assert "8 GFLOP must be computed" in said
    assert "400 TFLOP/s of tf32" in said


def test_costly_python_latency_batches_and_memory_are_mentioned():
    calm = timing(20.0, call_latency_us=30.0, back_to_back_us=19.0, peak_bytes=20_000_000)
    assert len(advice(report(work(), calm, timing(40.0)))) == 1
    wasteful = timing(20.0, call_latency_us=90.0, back_to_back_us=9.0, peak_bytes=60_000_000)
    said = "\n".join(advice(report(work(), wasteful, timing(40.0))))
    assert "a Python caller waits 90 us for 20 us" in said
    assert "with warm caches, a call takes 9 us" in said
    assert "allocates 40 MB beyond its outputs" in said
    assert "at least 20 us" in said


def test_device_time_outside_own_launches_is_reported_with_its_share():
    profile = Profile(
        case="main", launches=2, self_reported_share=0.4, suppressed_share=0.3, coverage=0.3
    )
    said = advice(report(work(), timing(20.0), timing(40.0), profile=profile))
    assert "70% of the device time is not in its own 2 launches" in said[-1]


@pytest.mark.parametrize(
    ("reasons", "held"), [(["power cap"], True), (["idle"], False), (None, False)]
)
def test_a_throttled_device_is_named(reasons, held):
    made = report(work(), timing(20.0), timing(40.0))
    host = {**made.environment.host, "after timing": {"reasons": reasons}}
    where = made.environment.model_copy(update={"host": host})
    said = advice(made.model_copy(update={"environment": where}))
    assert any("held back" in sentence for sentence in said) is held


@pytest.mark.parametrize(
    ("value", "shown"), [(4.4e12, "4.4 TB"), (1500, "1.5 kB"), (12, "12 B"), (2.5e6, "2.5 MB")]
)
def test_numbers_are_rendered_briefly(value, shown):
    assert engineering(value, "B") == shown


@pytest.mark.parametrize(("said", "moved"), [(None, 60), (12, 12)])
def test_declared_bytes_take_precedence_over_counted_bytes(said, moved):
    found = CaseMeasured(
        moved=said, inputs=10, weights=20, outputs=30, count=1, peak=0, flops=1, precision="fp32"
    )
    observations = Observations()
    record_workload(observations, "main", found)

    assert [item.moved_bytes for item in observations.work] == [moved]


def test_many_operators_are_a_limit_and_few_are_none():
    counts = {"aten::copy_": 256, "aten::exp": 256, "aten::sum": 256, "aten::sub": 1}
    used = OperatorUse(case="main", counts=counts)
    (said, roofline) = advice(report(work(), timing(7690.0), timing(40.0), operators=used))
    assert "number of operators" in said
    assert "769 of torch, 10 us each (256 aten::copy_, 256 aten::exp, 256 aten::sum)" in said
    assert "limited by memory" in roofline
    # Each does much work, there are few of them, or another case was timed.
    slow = report(work(), timing(76900.0), timing(40.0), operators=used)
    few = report(work(), timing(76.0), timing(40.0), operators=OperatorUse(case="main", counts={}))
    other = OperatorUse(case="other", counts=counts)
    elsewhere = report(work(), timing(7690.0), timing(40.0), operators=other)
    assert [len(advice(made)) for made in (slow, few, elsewhere)] == [1, 1, 1]


def test_loops_without_vectors_are_named_with_the_compilers_reason():
    loops = (
        LoopRemark(path="a.cpp", line=7, reason="control flow in loop."),
        LoopRemark(path="a.cpp", line=9, vector_bytes=8),
        LoopRemark(path="a.cpp", line=11, vector_bytes=64),
    )
    first, second, _ = advice(report(work(), timing(20.0), timing(40.0), loops=loops))
    assert first.startswith("a.cpp:7: ")
    assert first.endswith("The compiler: control flow in loop.")
    assert "a.cpp:9: " in second
    assert "8 bytes only" in second
    many = tuple(LoopRemark(path="a.cpp", line=n, reason="x") for n in range(1, 9))
    said = advice(report(work(), timing(20.0), timing(40.0), loops=many))
    assert said[3].startswith("5 more loops")


def test_a_product_far_below_the_peak_waits_for_its_operands():
    (said,) = advice(report(work(flops=8_000_000_000), timing(400.0), timing(40.0)))
    assert "tiles" in said
    (close,) = advice(report(work(flops=8_000_000_000), timing(30.0), timing(40.0)))
    assert "tiles" not in close


def shape(**changes: Any) -> KernelShape:
    fields: dict[str, Any] = {
        "name": "rows",
        "blocks": 4096,
        "threads": 128,
        "registers": 40,
        "shared_bytes": 0,
        "spilled_bytes": 0,
        "tensor_cores": False,
    }
    return KernelShape(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "flops", "expected"),
    [
        ({"spilled_bytes": 96}, 0, "rows: each thread spills 96 bytes of registers to memory."),
        ({"blocks": 8}, 0, "rows: the launch has 8 blocks."),
        ({"registers": 255}, 0, "rows: 12% occupancy, limited by registers"),
        ({}, 10**12, "No kernel uses tensor cores"),
    ],
)
def test_the_shape_of_a_launch_shows_what_limits_a_kernel(changes, flops, expected):
    profile = Profile(
        case="main",
        launches=1,
        self_reported_share=1.0,
        suppressed_share=1.0,
        coverage=1.0,
        shapes=(shape(**changes),),
    )
    plain = report(work(flops=flops), timing(4000.0), timing(8000.0))
    where = plain.environment
    where = where.model_copy(update={"host": {**where.host, "arch": "sm_90"}})
    made = plain.model_copy(update={"profile": profile, "environment": where})
    said = advice(made)
    assert any(item.startswith(expected) for item in said)
    good = profile.model_copy(update={"shapes": (shape(tensor_cores=True),)})
    assert not any(
        "rows" in item or "tensor" in item
        for item in advice(made.model_copy(update={"profile": good}))
    )
