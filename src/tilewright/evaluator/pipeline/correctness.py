"""Is it right? Draws of every case: nominal, hidden sizes, other contents; one call at a time."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from tilewright.evaluator.judge_client.input_sample import Answer, InputSampleInfo
from tilewright.evaluator.judge_client.official_tolerances import TRIALS
from tilewright.evaluator.pipeline.session import SLOTS, EvaluationSession
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.ended import EvaluationEnded
from tilewright.evaluator.runners.messages import Result
from tilewright.records import Case, CaseResult, Incorrect, Unjudged
from tilewright.wire.names import INPUT_VARIATIONS

__all__ = ["CorrectnessObservations", "judge_correctness"]

SIGNED = ("sign", "small_integers", "edge_values")
"""Those that have negative values where the nominal ones are positive; the others change sizes."""
ODD_SHARE = 0.75
"""Share of drawn sizes that are made odd: no multiple of any vector or tile."""
SMALL_BYTES = 2 << 20
"""Inputs larger than this get `FEW_VARIATIONS` secretly chosen variations, not all."""
FEW_VARIATIONS = 2
VARIATIONS_S = 12.0
"""Seconds after which no further variation is begun. Nominal samples and `FEW_VARIATIONS`
variations of each case are always made: a candidate that is slow at first must meet them too."""


@dataclass
class CorrectnessObservations:
    """What the calls of one candidate showed, beside right or wrong."""

    slots: dict[str, int] = field(default_factory=dict)
    """Where each case's inputs lay last: the second draw lies there again, with other contents."""
    calls: list[dict[str, Any]] = field(default_factory=list)
    """What each nominal call of a declared case was asked with, without contents."""
    operator_counts: dict[str, int] = field(default_factory=dict)
    launches: list[int] = field(default_factory=list)
    mutated: list[str] = field(default_factory=list)
    alias: bool = False


def judge_correctness(
    session: EvaluationSession, runner: Runner, seen: CorrectnessObservations
) -> None:
    """Call the candidate on every planned draw; what shows is noted in `seen` at once.

    Raises:
        Ended: an output is wrong, or the candidate failed.
    """
    runner.stage = "correctness"
    problem = session.request.problem
    if session.request.protocol == "official":
        for case in problem.cases:
            for trial in range(TRIALS[problem.official_comparison]):
                _judge_sample(session, runner, case, "nominal", trial, seen)
        return
    start = time.monotonic()
    sizes: dict[str, int] = {}
    for case in problem.cases:
        sizes[case.name] = _judge_sample(session, runner, case, "nominal", 0, seen)
    for case in hidden_cases(session):
        _judge_sample(session, runner, case, "nominal", 0, seen)
    for case in problem.cases:
        for place, variation in enumerate(_variations(session, case, sizes[case.name])):
            if place >= FEW_VARIATIONS and time.monotonic() - start > VARIATIONS_S:
                break
            _judge_sample(session, runner, case, variation, 0, seen)


def _variations(session: EvaluationSession, case: Case, size: int) -> list[str]:
    """Return the contents to draw. By size, not by time: a busy machine must not check less."""
    allowed = session.request.problem.input_variations
    names = [name for name in INPUT_VARIATIONS[1:] if allowed is None or name in allowed]
    choices = session.choices("variations", case.name)
    choices.shuffle(names)
    signed, sized = [n for n in names if n in SIGNED], [n for n in names if n not in SIGNED]
    # In turn: of the few that are always drawn one is of either kind.
    names = [
        name for replicate in zip_longest(signed, sized) for name in replicate if name is not None
    ]
    return names if size <= SMALL_BYTES else names[:FEW_VARIATIONS]


def hidden_cases(session: EvaluationSession) -> list[Case]:
    """Return secret sizes within the problem's bounds: neighbours of declared ones, and others.

    A size that is published can be met by code that is right for it alone; its neighbours cannot.
    """
    problem = session.request.problem
    if not problem.size_ranges:
        return []
    choices = session.choices("sizes")
    middle = problem.cases[max(len(problem.cases) - 2, 0)]
    plan = [(problem.cases[0], True), (middle, True), (middle, False), (middle, False)]
    cases = []
    for number, (base, near) in enumerate(plan):
        params = dict(base.params)
        for name, bounds in problem.size_ranges.items():
            declared = params.get(name)
            size = declared if isinstance(declared, int) else bounds[1]
            params[name] = _hidden_size(size, bounds, choices, near=near)
        cases.append(Case(name=f"hidden {number + 1}", params=params))
    return cases


def _hidden_size(
    declared: int, bounds: tuple[int, int], choices: random.Random, *, near: bool
) -> int:
    """Draw one size: next to the declared one, or log-uniform up to it and mostly odd."""
    low, high = bounds
    if near:
        size = declared + choices.choice((-1, 1))
    else:
        top = max(min(declared, high), low)
        size = round(max(low, 1) * (top / max(low, 1)) ** choices.random())
        size |= choices.random() < ODD_SHARE
    return min(max(size, low), high)


def _judge_sample(
    session: EvaluationSession,
    runner: Runner,
    case: Case,
    variation: str,
    repeat: int,
    seen: CorrectnessObservations,
) -> int:
    """Judge one draw; return the size of its inputs in bytes."""
    sample = session.sample(case, variation, repeat)
    session.emit("sample", {"case": case.name, "variation": variation})
    if sample.skipped:
        session.cases.append(_record(sample, "skipped", sample.skipped, None))
        session.forget(sample)
        return sample.size
    interpreted = not session.host.device.is_gpu
    language = session.request.candidate.language
    if interpreted and language == "triton" and "bfloat16" in sample.dtypes():
        message = "Triton's CPU interpreter computes bfloat16 wrongly; judge it on a GPU"
        raise EvaluationEnded(Unjudged(reason="bf16_unsupported_in_interpreter", message=message))
    slot = _slot(session, case, variation, repeat, seen)
    try:
        result = session.call(runner, sample, slot, count_operators=not seen.operator_counts)
    except EvaluationEnded as ended:
        message = getattr(ended.outcome, "message", ended.outcome.verdict)
        session.cases.append(_record(sample, "fail", message[:500], None))
        raise
    if variation == "nominal" and case in session.request.problem.cases:
        # Declared sizes alone: the hidden ones are nobody's to know.
        seen.calls.append(session.fields_of(sample, 0))
    answer = session.check(runner, sample, slot, result)
    _note(seen, sample, result, answer)
    verdict = "fail" if answer.wrong else "pass"
    detail = answer.message or ("; ".join(answer.mutated) and f"overwrote {answer.mutated}")
    session.cases.append(_record(sample, verdict, detail, answer.error))
    session.forget(sample)
    if answer.wrong:
        raise EvaluationEnded(_wrong(sample, answer))
    return sample.size


def _slot(
    session: EvaluationSession,
    case: Case,
    variation: str,
    repeat: int,
    seen: CorrectnessObservations,
) -> int:
    """Choose an address: the first one of a case twice in a row, then any of the ring."""
    slot = seen.slots.pop(case.name, None)
    if slot is None:
        slot = session.choices("slot", case.name, variation, repeat).randrange(SLOTS)
        if variation == "nominal" and repeat == 0:
            seen.slots[case.name] = slot
    return slot


def _wrong(sample: InputSampleInfo, answer: Answer) -> Unjudged | Incorrect:
    where = f"{sample.case}, {sample.variation}"
    if sample.stateful and answer.wrong in ("values", "nonfinite"):
        message = (
            f"{where}: the reference answers the same inputs and seed differently from call to "
            "call, and the candidate answers otherwise: what it keeps cannot be held against it"
        )
        return Unjudged(reason="stateful_reference", message=message)
    if sample.random and answer.wrong in ("values", "nonfinite"):
        message = (
            f"{where}: the reference draws random numbers and the candidate does not reproduce "
            "the stream of the public forward seed"
        )
        return Unjudged(reason="nondeterministic_reference", message=message)
    return Incorrect(
        kind=answer.wrong,
        case=where,
        message=answer.message,
        error_over_tolerance=answer.error,
    )


def _note(
    seen: CorrectnessObservations, sample: InputSampleInfo, result: Result, answer: Answer
) -> None:
    seen.operator_counts.update(result.operator_counts)
    seen.launches.append(result.launches)
    seen.mutated += [item for item in answer.mutated if item not in seen.mutated]
    seen.alias |= any(item.alias for item in result.outputs) and not sample.aliases


def _record(sample: InputSampleInfo, verdict: str, detail: str, error: float | None) -> CaseResult:
    return CaseResult(
        case=sample.case,
        input_variation=sample.variation,
        result=verdict,
        detail=detail,
        error_over_tolerance=error if verdict == "pass" else None,
        oracle=sample.oracle,
        seed=str(sample.seed),
    )
