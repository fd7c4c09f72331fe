"""The stages of the pipeline and the depth of its calls, read from the trace of an evaluation."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass, field
from types import CodeType, FrameType

import pytest

from tests.processes.evaluations import TIMED, Bench, bench, request
from tests.processes.test_evaluate import CPP
from tilewright.evaluator.pipeline.run import STAGES, evaluate
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.records import Baseline, EvalReport

__all__ = ["bench"]
pytestmark = pytest.mark.timed

MAX_STAGES = 11
MAX_DEPTH = 3
"""Modules that a call passes from `evaluate` to a stage, with the modules of both."""
EVALUATE = evaluate.__code__
OPEN_STAGE = inspect.unwrap(EvaluationSession.stage).__code__


def stack_up_to_evaluate(frame: FrameType) -> list[FrameType]:
    """Return the frames from this one out to `evaluate`; empty if `evaluate` did not call it."""
    found: list[FrameType] = []
    inner: FrameType | None = frame
    while inner is not None:
        found.append(inner)
        if inner.f_code is EVALUATE:
            return found
        inner = inner.f_back
    return []


def depth_of(stack: list[FrameType]) -> int:
    """Return how many modules of tilewright the frames of a stack belong to."""
    names = {frame.f_globals["__name__"] for frame in stack}
    return sum(name.startswith("tilewright.") for name in names)


@dataclass
class Trace:
    """The calls that a profile function saw during one evaluation."""

    callees: dict[CodeType, list[CodeType]] = field(default_factory=dict)
    """The calls of each function of the pipeline's file, in order."""
    depths: dict[str, int] = field(default_factory=dict)
    """The largest depth at which each function of the list ran, by its name."""
    records: dict[str, tuple[set[CodeType], int]] = field(default_factory=dict)
    """By the name of each stage record: the functions that were running, and the depth."""

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note one call."""
        caller = frame.f_back
        if event != "call" or caller is None:
            return
        if caller.f_code.co_filename == EVALUATE.co_filename:
            self.callees.setdefault(caller.f_code, []).append(frame.f_code)
        for stage in STAGES:
            if frame.f_code is stage.__code__:
                depth = depth_of(stack_up_to_evaluate(frame))
                self.depths[stage.__name__] = max(depth, self.depths.get(stage.__name__, 0))
        if frame.f_code is OPEN_STAGE:
            stack = stack_up_to_evaluate(frame)[1:]
            self.records[frame.f_locals["name"]] = ({one.f_code for one in stack}, depth_of(stack))


@pytest.fixture(scope="module")
def traced(bench: Bench) -> tuple[Trace, EvalReport]:
    """Evaluate a native candidate, so that every stage of a CPU has work, under a trace."""
    asked = request(
        CPP,
        path="work.cpp",
        trace=True,
        timing=TIMED,
        baselines=(Baseline(name="eager", kind="eager"),),
    )
    trace = Trace()
    sys.setprofile(trace)
    try:
        report = bench.judge(asked)
    finally:
        sys.setprofile(None)
    return trace, report


def test_the_trace_shows_the_listed_stages_in_order_and_no_other(traced):
    trace, report = traced
    codes = [stage.__code__ for stage in STAGES]
    [loop] = [code for code, called in trace.callees.items() if codes[0] in called]

    assert report.verdict == "correct"
    # The loop also calls the class of the outcome, which is no part of the evaluator.
    called = [code for code in trace.callees[loop] if "/evaluator/" in code.co_filename]
    assert called == codes
    assert len(called) <= MAX_STAGES


def test_every_stage_is_at_most_three_modules_away_from_evaluate(traced):
    trace, _ = traced

    assert list(trace.depths) == [stage.__name__ for stage in STAGES]
    assert max(trace.depths.values()) <= MAX_DEPTH, trace.depths


def test_every_record_of_a_stage_is_opened_near_evaluate_by_a_stage_of_the_list(traced):
    trace, report = traced
    listed = {stage.__code__ for stage in STAGES}
    closing = {"cleanup"}

    # `total` is the sum of all, which no function opens.
    assert {stage.name for stage in report.stages} - {"total"} == set(trace.records)
    assert {"build", "start_judge", "correctness", "timing", "shutdown"} < set(trace.records)
    for name, (running, depth) in trace.records.items():
        assert depth <= MAX_DEPTH, name
        assert len(running & listed) == (name not in closing), name
