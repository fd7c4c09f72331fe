"""Whose doing it is that device memory ran out. Another process stands for other supervisors."""

from __future__ import annotations

from typing import Any

import pytest

from tests.in_process_evaluator import a_request
from tests.shared_device import GIB, HONEST, PROBLEM
from tilewright.errors import BaselineOutOfMemory, ProblemOutOfMemory
from tilewright.evaluator.pipeline import run
from tilewright.evaluator.pipeline.memory_admission import admit
from tilewright.evaluator.pipeline.memory_attribution import (
    attribute_out_of_memory,
    attribute_weak_oracle,
    outcome_of_shortage,
    unjudged_by_other_programs,
)
from tilewright.records import Correct, Failed
from tilewright.records.codes import Stage


@pytest.mark.parametrize(
    ("strangers", "estimate", "verdict"),
    [(0, 90, "failed"), (30, 40, "failed"), (30, 60, "unjudged")],
)
def test_memory_of_strangers_decides_only_if_the_problem_lacks_it(
    begun, strangers, estimate, verdict
):
    begun.strangers = strangers * GIB
    admit(begun.session, [])
    begun.session.memory.estimated_bytes = estimate * GIB
    begun.session.host.leased = True
    failed = Failed(
        stage="correctness", reason="out_of_memory", exception="RuntimeError", message="no memory"
    )
    other = failed.model_copy(update={"reason": "exception"})

    assert attribute_out_of_memory(begun.session, failed).verdict == verdict
    assert attribute_out_of_memory(begun.session, other) is other
    begun.session.host.leased = False
    assert attribute_out_of_memory(begun.session, failed) is failed


@pytest.mark.parametrize(("strangers", "estimate", "blamed"), [(0, 0, False), (30, 0, True)])
def test_strangers_are_named_where_the_need_is_unknown(begun, strangers, estimate, blamed):
    begun.strangers = strangers * GIB
    admit(begun.session, [])
    begun.session.memory.estimated_bytes = estimate
    found = unjudged_by_other_programs(
        begun.session, "CUDA out of memory. Tried to allocate 12 GiB"
    )
    assert (found is not None) == blamed
    assert found is None or ("30720 MiB" in found.message and "12 GiB" in found.message)


@pytest.mark.parametrize(
    ("strangers", "estimate", "verdict"), [(0, 90, ""), (30, 0, "unjudged"), (0, 40, "failed")]
)
def test_a_problem_is_not_blamed_for_memory_that_others_hold(
    evaluator, begun, strangers, estimate, verdict, monkeypatch
):
    begun.strangers = strangers * GIB

    def lacks(session: Any) -> None:
        # There is no GPU, so that only the admission takes place on the device that is described.
        session.on_gpu = True
        admit(session, [])
        session.on_gpu = False
        session.memory.estimated_bytes = estimate * GIB
        with session.stage(Stage.LOAD):
            pass
        raise ProblemOutOfMemory("sample: CUDA out of memory. Tried to allocate 12 GiB")

    monkeypatch.setattr(run, "STAGES", (*run.STAGES[:2], lacks))
    if verdict:
        report = evaluator.judge(a_request(PROBLEM, HONEST))
        assert report.verdict == verdict
        assert "12 GiB" in report.outcome.message
    else:
        with pytest.raises(ProblemOutOfMemory, match="12 GiB"):
            evaluator.judge(a_request(PROBLEM, HONEST))


@pytest.mark.parametrize(
    ("strangers", "estimate", "lacked", "stage", "verdict"),
    [
        (0, 40, True, "load", "failed"),
        (0, 40, False, "load", "correct"),
        (0, 40, True, "start_judge", "correct"),
        # Judge and runners do not fit: the comparison in float32 decides.
        (0, 90, True, "load", "correct"),
        (50, 40, True, "load", "unjudged"),
        (20, 40, True, "load", "failed"),
    ],
)
def test_a_candidate_that_takes_the_memory_of_the_oracle_failed(
    begun, strangers, estimate, lacked, stage, verdict
):
    begun.strangers = strangers * GIB
    admit(begun.session, [])
    begun.session.memory.estimated_bytes = estimate * GIB
    begun.session.judge.ran_out_of_memory = lacked
    with begun.session.stage(Stage(stage)):
        pass
    assert attribute_weak_oracle(begun.session, Correct()).verdict == verdict
    crashed = Failed(stage="correctness", reason="crash", message="killed")
    assert attribute_weak_oracle(begun.session, crashed) is crashed


@pytest.mark.parametrize(("strangers", "verdict"), [(0, None), (60, "unjudged")])
def test_a_baseline_that_needs_more_than_the_reference_blames_no_candidate(
    begun, strangers, verdict
):
    begun.strangers = strangers * GIB
    admit(begun.session, [])
    begun.session.memory.estimated_bytes = 40 * GIB
    with begun.session.stage(Stage.LOAD):
        pass
    found = outcome_of_shortage(begun.session, BaselineOutOfMemory("baseline 'max-autotune'"))
    assert (found and found.verdict) == verdict
