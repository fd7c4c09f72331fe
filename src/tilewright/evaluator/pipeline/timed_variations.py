"""Input variations of timed calls that the stage correctness did not check.

Large inputs get few variations there, since the float64 oracle takes seconds. Timed calls are
compared with the baseline's outputs, which takes no oracle. So the judge only finds out whether the
reference accepts such inputs at all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from tilewright.evaluator.pipeline.correctness import PARTS, UNTIMED_VARIATIONS
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.timing.call_plan import (
    VARIATIONS_KEY,
    chosen_variations,
    uneven,
)
from tilewright.records import Case, CaseResult, Problem
from tilewright.wire.names import HIGHEST_PEAK, allowed_variations

MAX_TRIAL_S = 6.0
"""Seconds after which no further variation is tried. Those that are left are not used."""


def choose_variations(session: EvaluationSession, cases: Sequence[Case]) -> None:
    """Add to the usable variations of each case what its timed calls may get besides."""
    late_at = time.monotonic() + MAX_TRIAL_S
    for case in cases:
        usable = session.runners.usable_variations.setdefault(case.name, [])
        usable += _accepted(session, case, usable, late_at)
        half = session.observations.correctness.half_outputs.get(case.name, False)
        if half and uneven(usable) == PARTS:
            reason = session.judge.refusal(case, HIGHEST_PEAK)
            if reason:
                _record(session, case, HIGHEST_PEAK, reason)
            else:
                session.runners.peaked.add(case.name)


def _accepted(
    session: EvaluationSession, case: Case, usable: Sequence[str], late_at: float
) -> list[str]:
    """Return the unchecked variations, of which those that will be chosen were tried."""
    problem, cases = session.request.problem, session.observations.cases
    tried = set(usable)
    while True:
        unchecked = unchecked_variations(problem, case.name, cases)
        choices = session.context.choices(VARIATIONS_KEY, case.name)
        untried = set(chosen_variations(choices, [*usable, *unchecked])) - tried
        if not untried:
            return unchecked
        name = min(untried)
        late = time.monotonic() > late_at
        reason = "no time was left to try it" if late else session.judge.refusal(case, name)
        if reason:
            _record(session, case, name, reason)
        tried.add(name)


def unchecked_variations(problem: Problem, case: str, seen: Sequence[CaseResult]) -> list[str]:
    """Return the variations of a case that no recorded call has tried, and that may be timed."""
    tried = {item.input_variation.partition("/")[0] for item in seen if item.case == case}
    names = allowed_variations(problem.input_variations)
    return [name for name in names if name not in tried and name not in UNTIMED_VARIATIONS]


def has_refused_peaks(case: str, seen: Sequence[CaseResult]) -> bool:
    """Tell whether the reference refused uneven parts with a peak."""
    return any(item.case == case and item.input_variation == HIGHEST_PEAK for item in seen)


def _record(session: EvaluationSession, case: Case, name: str, reason: str) -> None:
    session.observations.cases.append(
        CaseResult(case=case.name, input_variation=name, result="skipped", detail=reason)
    )
