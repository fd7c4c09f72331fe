"""The labels of a problem's check, and what the judge does about each weakness."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tilewright.records.codes import LabelName
from tilewright.records.problem_health import CaseCheck, ProblemHealth

SLOW_SAMPLE_S = 1.0
"""Seconds of one input sample from which on a report names it: other steps take less."""

_CASE_LABELS: tuple[tuple[LabelName, Callable[[CaseCheck], bool], str], ...] = (
    (
        LabelName.SEED_IGNORED,
        lambda case: case.ignores_seed,
        "two seeds give equal inputs; for each timed call the judge moves their elements at random "
        "unless the reference refuses other values",
    ),
    (
        LabelName.INPUTS_NOT_REPEATABLE,
        lambda case: not case.repeatable,
        "one seed gives other inputs each time; the judge keeps each sample, and a reproducer "
        "cannot make it again",
    ),
    (
        LabelName.INPUT_SHAPES_VARY,
        lambda case: case.shapes_vary,
        "two seeds give tensors of other shapes; timed calls keep those of their sample",
    ),
    (
        LabelName.CONSTANT_INPUT,
        lambda case: bool(case.constant_inputs),
        "a mask or an integer tensor among the inputs is the same under two seeds, so results that "
        "follow from it alone can be kept",
    ),
    (
        LabelName.CUDA_ON_CPU,
        lambda case: case.cuda_on_cpu,
        "problem code asks for a CUDA device; the judge gives it the CPU",
    ),
    (
        LabelName.INPUTS_SHARE_MEMORY,
        lambda case: case.shares_memory,
        "a sample lies in the memory of an earlier one; the judge copies each",
    ),
)


def labels_of(health: ProblemHealth) -> Iterator[tuple[LabelName, str]]:
    """Yield the name and the text of each label of a problem."""
    if health.unsound:
        yield LabelName.UNSOUND_PROBLEM, unsound_text(health)
    elif health.passing:
        yield LabelName.WEAK_PROBLEM, f"without any work these answers pass: {_listed(health)}"
    elif health.weak_cases:
        yield LabelName.WEAK_CASE, "; ".join(map(_weak_case, health.weak_cases))
    own = {case.case: case.passing_own_inputs for case in health.cases if case.passing_own_inputs}
    if own and not health.unsound:
        found = "; ".join(f"{name}: {', '.join(answers)}" for name, answers in own.items())
        text = "on the problem's own inputs alone these answers without work pass"
        yield LabelName.WEAK_INPUTS, f"{text}: {found}"
    undefined = {case.case: case.undefined_share for case in health.cases if case.undefined_share}
    if undefined and not health.unsound:
        found = "; ".join(f"{name}: {share:.1%}" for name, share in undefined.items())
        text = "the reference leaves elements of its outputs unwritten, and these are not compared"
        yield LabelName.PARTLY_UNDEFINED_REFERENCE, f"{text} ({found})"
    rows = {case.case: case.rows for case in health.cases if case.rows is not None}
    if rows:
        found = "; ".join(f"{name}: {differ} of {all_}" for name, (all_, differ) in rows.items())
        text = "so few rows of the inputs differ that a table of results is right for all"
        yield LabelName.REPEATED_ROWS, f"{text} ({found})"
    for name, applies, text in _CASE_LABELS:
        cases = [case.case for case in health.cases if applies(case)]
        if cases:
            yield name, f"{text} ({_named(cases)})"
    slowest = max(health.cases, key=lambda case: case.sample_s)
    if slowest.sample_s > SLOW_SAMPLE_S:
        took = f"one input sample takes {slowest.sample_s:.3g} s ({slowest.case})"
        yield LabelName.SLOW_INPUTS, f"{took}; fewer are made"


def unsound_text(health: ProblemHealth) -> str:
    """Return why no verdict on a problem means anything."""
    if any(case.undefined_share == 1.0 for case in health.cases):
        return "no element of the reference's outputs is defined by its inputs"
    if any(case.writes_outside for case in health.cases):
        return "the reference writes into memory around its arguments"
    passing = f"; these answers pass: {_listed(health)}" if health.passing else ""
    return f"the reference's output does not depend on its inputs{passing}"


def _listed(health: ProblemHealth) -> str:
    return ", ".join(health.passing)


def _weak_case(case: CaseCheck) -> str:
    answers = ", ".join(case.passing) or "the output is constant"
    return f"{case.case}: {answers}"


def _named(cases: list[str]) -> str:
    return cases[0] if len(cases) == 1 else f"{cases[0]} and {len(cases) - 1} more"
