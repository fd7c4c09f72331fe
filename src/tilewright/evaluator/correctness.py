"""Is it right? Draws of every case: nominal, hidden sizes, other contents; one call at a time."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from tilewright.evaluator.drawn import Answer, Drawn
from tilewright.evaluator.evaluation import SLOTS, Evaluation
from tilewright.evaluator.published import TRIALS
from tilewright.evaluator.sides import Ended, Side
from tilewright.evaluator.testimony import Result
from tilewright.records import Case, CaseResult, Incorrect, Unjudged

__all__ = ["Seen", "judge_correctness"]

CONTENTS = ("nominal", "scale", "sign", "offset", "heavy_tail", "small_integers", "edge_values")
SIGNED = ("sign", "small_integers", "edge_values")
"""Those that have negative values where the nominal ones are positive; the others change sizes."""
ODD_SHARE = 0.75
"""Share of drawn sizes that are made odd: no multiple of any vector or tile."""
SMALL_BYTES = 2 << 20
"""Inputs larger than this get `FEW_CONTENTS` secretly chosen variations, not all."""
FEW_CONTENTS = 2
VARIATIONS_S = 12.0
"""Seconds after which no further variation is begun. Nominal draws and `FEW_CONTENTS` variations of
each case are always made: else a candidate that is slow at first would never meet one."""


@dataclass
class Seen:
    """What the calls of one candidate showed, beside right or wrong."""

    slots: dict[str, int] = field(default_factory=dict)
    """Where each case's inputs lay last: the second draw lies there again, with other contents."""
    calls: list[dict[str, Any]] = field(default_factory=list)
    """What each nominal call of a declared case was asked with, without contents."""
    census: dict[str, int] = field(default_factory=dict)
    launches: list[int] = field(default_factory=list)
    mutated: list[str] = field(default_factory=list)
    alias: bool = False


def judge_correctness(evaluation: Evaluation, side: Side, seen: Seen) -> None:
    """Call the candidate on every planned draw; what shows is noted in `seen` at once.

    Raises:
        Ended: an output is wrong, or the candidate failed.
    """
    side.stage = "correctness"
    problem = evaluation.request.problem
    if evaluation.request.protocol == "official":
        for case in problem.cases:
            for trial in range(TRIALS[problem.published]):
                _judge_draw(evaluation, side, case, "nominal", trial, seen)
        return
    start = time.monotonic()
    sizes: dict[str, int] = {}
    for case in problem.cases:
        sizes[case.name] = _judge_draw(evaluation, side, case, "nominal", 0, seen)
    for case in hidden_cases(evaluation):
        _judge_draw(evaluation, side, case, "nominal", 0, seen)
    for case in problem.cases:
        for place, contents in enumerate(_variations(evaluation, case, sizes[case.name])):
            if place >= FEW_CONTENTS and time.monotonic() - start > VARIATIONS_S:
                break
            _judge_draw(evaluation, side, case, contents, 0, seen)


def _variations(evaluation: Evaluation, case: Case, size: int) -> list[str]:
    """Return the contents to draw. By size, not by time: a busy machine must not check less."""
    allowed = evaluation.request.problem.contents
    names = [name for name in CONTENTS[1:] if allowed is None or name in allowed]
    choices = evaluation.choices("variations", case.name)
    choices.shuffle(names)
    signed, sized = [n for n in names if n in SIGNED], [n for n in names if n not in SIGNED]
    # In turn: of the few that are always drawn one is of either kind.
    names = [name for pair in zip_longest(signed, sized) for name in pair if name is not None]
    return names if size <= SMALL_BYTES else names[:FEW_CONTENTS]


def hidden_cases(evaluation: Evaluation) -> list[Case]:
    """Return secret sizes within the problem's bounds: neighbours of declared ones, and others.

    A size that is published can be met by code that is right for it alone; its neighbours cannot.
    """
    problem = evaluation.request.problem
    if not problem.sizes:
        return []
    choices = evaluation.choices("sizes")
    middle = problem.cases[max(len(problem.cases) - 2, 0)]
    plan = [(problem.cases[0], True), (middle, True), (middle, False), (middle, False)]
    cases = []
    for number, (base, near) in enumerate(plan):
        params = dict(base.params)
        for name, bounds in problem.sizes.items():
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


def _judge_draw(
    evaluation: Evaluation, side: Side, case: Case, contents: str, repeat: int, seen: Seen
) -> int:
    """Judge one draw; return the size of its inputs in bytes."""
    drawn = evaluation.draw(case, contents, repeat)
    evaluation.emit("draw", {"case": case.name, "contents": contents})
    if drawn.skipped:
        evaluation.cases.append(_record(drawn, "skipped", drawn.skipped, None))
        evaluation.forget(drawn)
        return drawn.size
    interpreted = not evaluation.host.device.is_gpu
    language = evaluation.request.candidate.language
    if interpreted and language == "triton" and "bfloat16" in drawn.dtypes():
        message = "Triton's CPU interpreter computes bfloat16 wrongly; judge it on a GPU"
        raise Ended(Unjudged(reason="bf16 in the interpreter", message=message))
    slot = _slot(evaluation, case, contents, repeat, seen)
    try:
        result = evaluation.call(side, drawn, slot, census=not seen.census)
    except Ended as ended:
        message = getattr(ended.outcome, "message", ended.outcome.verdict)
        evaluation.cases.append(_record(drawn, "wrong", message[:500], None))
        raise
    if contents == "nominal" and case in evaluation.request.problem.cases:
        # Declared sizes alone: the hidden ones are nobody's to know.
        seen.calls.append(evaluation.fields_of(drawn, 0))
    answer = evaluation.check(side, drawn, slot, result)
    _note(seen, drawn, result, answer)
    verdict = "wrong" if answer.wrong else "right"
    detail = answer.message or ("; ".join(answer.mutated) and f"overwrote {answer.mutated}")
    evaluation.cases.append(_record(drawn, verdict, detail, answer.error))
    evaluation.forget(drawn)
    if answer.wrong:
        raise Ended(_wrong(drawn, answer))
    return drawn.size


def _slot(evaluation: Evaluation, case: Case, contents: str, repeat: int, seen: Seen) -> int:
    """Choose an address: the first one of a case twice in a row, then any of the ring."""
    slot = seen.slots.pop(case.name, None)
    if slot is None:
        slot = evaluation.choices("slot", case.name, contents, repeat).randrange(SLOTS)
        if contents == "nominal" and repeat == 0:
            seen.slots[case.name] = slot
    return slot


def _wrong(drawn: Drawn, answer: Answer) -> Unjudged | Incorrect:
    where = f"{drawn.case}, {drawn.contents}"
    if drawn.stateful and answer.wrong in ("values", "nonfinite"):
        message = (
            f"{where}: the reference answers the same inputs and seed differently from call to "
            "call, and the candidate answers otherwise: what it keeps cannot be held against it"
        )
        return Unjudged(reason="stateful problem", message=message)
    if drawn.random and answer.wrong in ("values", "nonfinite"):
        message = (
            f"{where}: the reference draws random numbers and the candidate does not reproduce "
            "the stream of the public forward seed"
        )
        return Unjudged(reason="random problem", message=message)
    return Incorrect(
        kind=answer.wrong,
        case=where,
        message=answer.message,
        error_over_bound=answer.error,
    )


def _note(seen: Seen, drawn: Drawn, result: Result, answer: Answer) -> None:
    seen.census.update(result.census)
    seen.launches.append(result.launches)
    seen.mutated += [item for item in answer.mutated if item not in seen.mutated]
    seen.alias |= any(item.alias for item in result.outputs) and not drawn.aliases


def _record(drawn: Drawn, verdict: str, detail: str, error: float | None) -> CaseResult:
    return CaseResult(
        case=drawn.case,
        contents=drawn.contents,
        verdict=verdict,
        detail=detail,
        error_over_bound=error if verdict == "right" else None,
        oracle=drawn.oracle,
        seed=str(drawn.seed),
    )
