"""Stage correctness: calls on nominal inputs, hidden sizes and input variations of every case."""

from __future__ import annotations

import random
import time
from itertools import zip_longest

from tilewright.evaluator.evidence import CorrectnessObservations
from tilewright.evaluator.judge_client.input_sample import InputSampleInfo
from tilewright.evaluator.judge_client.messages import CallAnswer
from tilewright.evaluator.judge_client.official_tolerances import TRIALS
from tilewright.evaluator.pipeline.precompile import keep_call_shapes
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.pipeline.weights_recheck import label_constant_folding
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.ended import EvaluationEnded
from tilewright.evaluator.runners.messages import Result
from tilewright.evaluator.runners.pool import SLOTS
from tilewright.records import Case, CaseResult, Incorrect, Problem, Unjudged
from tilewright.wire.names import INPUT_VARIATIONS

__all__ = ["check_correctness", "hidden_cases"]

SIGNED = ("sign", "small_integers", "edge_values")
"""Variations with negative values where nominal ones are positive; the others change magnitudes."""
ODD_SHARE = 0.75
"""Share of the hidden sizes that are odd, hence no multiple of any vector or tile."""
SMALL_BYTES = 2 << 20
"""Inputs larger than this get `FEW_VARIATIONS` secretly chosen variations, not all: the judge's
float64 reference on large inputs takes seconds."""
FEW_VARIATIONS = 2
"""One of either kind."""
VARIATIONS_S = 12.0
"""Seconds after which no further variation is begun. Nominal samples and `FEW_VARIATIONS`
variations of each case are always made: a candidate that is slow at first must meet them too."""


def check_correctness(session: EvaluationSession) -> None:
    """Call the candidate on every planned input sample, and record what it shows.

    Raises:
        EvaluationEnded: an output is wrong, or the candidate failed.
    """
    with session.stage("correctness"):
        runner, seen = session.runners.runners["candidate"], session.observations.correctness
        _check_samples(session, runner, seen)
        runner.judged = True
        keep_call_shapes(session, seen.calls)
        if session.request.protocol == "official" and session.runners.problem.is_module:
            label_constant_folding(session)


def _check_samples(
    session: EvaluationSession, runner: Runner, seen: CorrectnessObservations
) -> None:
    runner.stage = "correctness"
    problem = session.request.problem
    if session.request.protocol == "official":
        for case in problem.cases:
            for trial in range(TRIALS[problem.official_comparison]):
                _check_sample(session, runner, case, "nominal", trial, seen)
        return
    start = time.monotonic()
    sizes: dict[str, int] = {}
    for case in problem.cases:
        sizes[case.name] = _check_sample(session, runner, case, "nominal", 0, seen)
    for case in hidden_cases(problem, session.context.choices("sizes")):
        _check_sample(session, runner, case, "nominal", 0, seen)
    for case in problem.cases:
        for place, variation in enumerate(_variations(session, case, sizes[case.name])):
            if place >= FEW_VARIATIONS and time.monotonic() - start > VARIATIONS_S:
                break
            _check_sample(session, runner, case, variation, 0, seen)


def _variations(session: EvaluationSession, case: Case, size: int) -> list[str]:
    """Return the variations to check. Size decides, because a busy machine must not check less."""
    allowed = session.request.problem.input_variations
    names = [name for name in INPUT_VARIATIONS[1:] if allowed is None or name in allowed]
    choices = session.context.choices("variations", case.name)
    choices.shuffle(names)
    signed, sized = [n for n in names if n in SIGNED], [n for n in names if n not in SIGNED]
    # In turn, so that the few that are always checked are one of either kind.
    names = [name for pair in zip_longest(signed, sized) for name in pair if name is not None]
    return names if size <= SMALL_BYTES else names[:FEW_VARIATIONS]


def hidden_cases(problem: Problem, choices: random.Random) -> list[Case]:
    """Return secret sizes within the problem's ranges: neighbours of declared ones, and others.

    Code may be right for published sizes alone, but not for unknown neighbours of them. `choices`
    is the generator "sizes" of the evaluation.
    """
    if not problem.size_ranges:
        return []
    middle = problem.cases[max(len(problem.cases) - 2, 0)]
    plan = [(problem.cases[0], True), (middle, True), (middle, False), (middle, False)]
    cases = []
    for number, (base, near) in enumerate(plan):
        params = dict(base.params)
        for name, limits in problem.size_ranges.items():
            declared = params.get(name)
            size = declared if isinstance(declared, int) else limits[1]
            params[name] = _hidden_size(size, limits, choices, near=near)
        cases.append(Case(name=f"hidden {number + 1}", params=params))
    return cases


def _hidden_size(
    declared: int, limits: tuple[int, int], choices: random.Random, *, near: bool
) -> int:
    """Choose one size: next to the declared one, or log-uniform up to it and mostly odd."""
    low, high = limits
    if near:
        size = declared + choices.choice((-1, 1))
    else:
        top = max(min(declared, high), low)
        size = round(max(low, 1) * (top / max(low, 1)) ** choices.random())
        size |= choices.random() < ODD_SHARE
    return min(max(size, low), high)


def _check_sample(
    session: EvaluationSession,
    runner: Runner,
    case: Case,
    variation: str,
    repeat: int,
    seen: CorrectnessObservations,
) -> int:
    """Check one input sample; return the size of its inputs in bytes."""
    sample = session.judge.sample(case, variation, repeat)
    layout, cases = sample.layout, session.observations.cases
    session.context.emit("sample", {"case": case.name, "variation": variation})
    if layout.skipped:
        cases.append(_record(sample, "skipped", layout.skipped, None))
        session.judge.forget(sample)
        return layout.size
    interpreted = not session.on_gpu
    language = session.request.candidate.language
    if interpreted and language == "triton" and "bfloat16" in sample.dtypes():
        message = "Triton's CPU interpreter computes bfloat16 wrongly; judge it on a GPU"
        raise EvaluationEnded(Unjudged(reason="bf16_unsupported_in_interpreter", message=message))
    slot = _slot(session, case, variation, repeat, seen)
    try:
        count_operators = not seen.operator_counts
        result = session.runners.call(runner, sample, slot, count_operators=count_operators)
    except EvaluationEnded as ended:
        message = getattr(ended.outcome, "message", ended.outcome.verdict)
        cases.append(_record(sample, "fail", message[:500], None))
        raise
    if variation == "nominal" and case in session.request.problem.cases:
        # Not of hidden sizes, which stay secret.
        seen.calls.append(sample.call_fields(0))
    answer = session.runners.check(runner, sample, slot, result)
    _note(seen, sample, result, answer)
    verdict = "fail" if answer.wrong else "pass"
    detail = answer.message or ("; ".join(answer.mutated) and f"overwrote {answer.mutated}")
    cases.append(_record(sample, verdict, detail, answer.error))
    session.judge.forget(sample)
    if answer.wrong:
        raise EvaluationEnded(_wrong(sample, answer))
    return layout.size


def _slot(
    session: EvaluationSession,
    case: Case,
    variation: str,
    repeat: int,
    seen: CorrectnessObservations,
) -> int:
    """Choose a slot: the first one of a case twice in a row, then any."""
    slot = seen.slots.pop(case.name, None)
    if slot is None:
        slot = session.context.choices("slot", case.name, variation, repeat).randrange(SLOTS)
        if variation == "nominal" and repeat == 0:
            seen.slots[case.name] = slot
    return slot


def _wrong(sample: InputSampleInfo, answer: CallAnswer) -> Unjudged | Incorrect:
    where = f"{sample.case}, {sample.variation}"
    if sample.layout.stateful and answer.wrong in ("values", "nonfinite"):
        message = (
            f"{where}: the reference answers the same inputs and seed differently from call to "
            "call, and the candidate differs from it: a kept state cannot be compared"
        )
        return Unjudged(reason="stateful_reference", message=message)
    if sample.layout.random and answer.wrong in ("values", "nonfinite"):
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
    seen: CorrectnessObservations, sample: InputSampleInfo, result: Result, answer: CallAnswer
) -> None:
    seen.operator_counts.update(result.operator_counts)
    seen.launches.append(result.launches)
    seen.mutated += [item for item in answer.mutated if item not in seen.mutated]
    seen.alias |= any(item.alias for item in result.outputs) and not sample.layout.aliases


def _record(sample: InputSampleInfo, verdict: str, detail: str, error: float | None) -> CaseResult:
    return CaseResult(
        case=sample.case,
        input_variation=sample.variation,
        result=verdict,
        detail=detail,
        error_over_tolerance=error if verdict == "pass" else None,
        oracle=sample.layout.oracle,
        seed=str(sample.seed),
    )
