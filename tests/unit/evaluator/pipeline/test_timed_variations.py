"""Which variations timed calls get that the stage correctness did not check."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from tilewright.evaluator.pipeline import timed_variations
from tilewright.evaluator.pipeline.correctness import UNTIMED_VARIATIONS
from tilewright.evaluator.pipeline.timed_variations import (
    choose_variations,
    has_refused_peaks,
    unchecked_variations,
)
from tilewright.evaluator.timing.call_plan import VARIATIONS_OF_CASE, chosen_variations, uneven
from tilewright.records import Case, CaseResult
from tilewright.wire.names import HIGHEST_PEAK, INPUT_VARIATIONS, PEAKED

ONE = Case(name="one")


def test_timed_calls_may_get_the_variations_that_were_not_checked():
    def record(case: str, variation: str, result: str = "pass") -> CaseResult:
        return CaseResult(case=case, input_variation=variation, result=result)

    seen = [record("one", "nominal"), record("one", "scale/4"), record("two", "sign")]
    seen.append(record("one", "offset", "skipped"))
    problem: Any = SimpleNamespace(input_variations=None)
    found = unchecked_variations(problem, "one", seen)
    assert set(found) == {*INPUT_VARIATIONS} - {*UNTIMED_VARIATIONS, "scale", "offset"}
    problem = SimpleNamespace(input_variations=("nominal", "sign", "scale"))
    assert unchecked_variations(problem, "one", seen) == ["sign"]


def chosen(seed: int, refused: set[str], *, half: bool = True) -> tuple[Any, list[str], list[str]]:
    """Choose for a case; return the session, what is usable, and what was tried."""
    tried: list[str] = []

    def refusal(case: Case, name: str) -> str:
        assert case == ONE
        tried.append(name)
        return "no" if name in refused else ""

    usable = ["uneven_parts", "scale"]
    seen = [CaseResult(case="one", input_variation=name, result="pass") for name in usable]
    session: Any = SimpleNamespace(
        request=SimpleNamespace(problem=SimpleNamespace(input_variations=None)),
        context=SimpleNamespace(choices=lambda *names: random.Random(f"{seed} {names}")),
        judge=SimpleNamespace(refusal=refusal),
        runners=SimpleNamespace(usable_variations={"one": usable}, peaked=set()),
        observations=SimpleNamespace(
            cases=seen, correctness=SimpleNamespace(half_outputs={"one": half})
        ),
    )
    choose_variations(session, [ONE])
    return session, usable, tried


def test_none_of_the_chosen_ones_is_refused_and_each_was_tried_once():
    refused = {"sign", "small_integers", "edge_values"}
    for seed in range(60):
        session, usable, tried = chosen(seed, refused)
        choices = session.context.choices("variations of timed calls", "one")
        will_get = chosen_variations(choices, usable)
        assert len(will_get) == VARIATIONS_OF_CASE
        assert not set(will_get) & refused
        assert len(set(tried)) == len(tried)
        assert set(will_get) - {"uneven_parts", "scale"} <= set(tried)
        recorded = {item.input_variation for item in session.observations.cases}
        assert recorded >= refused & set(tried)


def test_no_untried_variation_is_used_where_no_time_is_left(monkeypatch):
    monkeypatch.setattr(timed_variations, "MAX_TRIAL_S", -1.0)
    session, usable, tried = chosen(1, set())
    assert set(tried) <= {HIGHEST_PEAK}
    choices = session.context.choices("variations of timed calls", "one")
    assert set(chosen_variations(choices, usable)) <= {"uneven_parts", "scale"}


def test_peaks_are_tried_for_outputs_of_16_bits():
    session, usable, tried = chosen(1, set())
    assert HIGHEST_PEAK in tried
    assert session.runners.peaked == {"one"}
    assert uneven(usable, peaked=True) == PEAKED
    session, _, _ = chosen(1, {HIGHEST_PEAK})
    assert session.runners.peaked == set()
    assert has_refused_peaks("one", session.observations.cases)
    assert HIGHEST_PEAK not in chosen(1, set(), half=False)[2]
