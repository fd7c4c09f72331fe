"""Stage correctness: calls on nominal inputs, hidden sizes and input variations of every case."""

from __future__ import annotations

import random
import time
from itertools import zip_longest

from tilewright.evaluator.judge_client.client import TRIALS, InputSampleInfo
from tilewright.evaluator.judge_client.messages import CallAnswer, ResetWeights
from tilewright.evaluator.pipeline.prepare import keep_call_shapes
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.pipeline.wrong_output import passes_when_fresh
from tilewright.evaluator.runners.messages import EvaluationEnded
from tilewright.evaluator.runners.pool import SLOTS
from tilewright.records import Case, CaseResult, Incorrect, Problem, Unjudged
from tilewright.records.codes import IncorrectKind, InputOrigin, LabelName, Stage, UnjudgedReason
from tilewright.wire.names import INPUT_VARIATIONS, allowed_variations

SIGNED = ("sign", "small_integers", "edge_values")
"""Variations with negative values where nominal ones are positive; the others change magnitudes."""
PARTS = "uneven_parts"
"""The variation that every case gets first: it shows work that was left out."""
HALF_RANGE = ("above_half_range", "below_half_range")
"""Variations whose values half precision cannot hold."""
ODD_SHARE = 0.75
"""Share of the hidden sizes that are odd, hence no multiple of any vector or tile."""
SMALL_BYTES = 2 << 20
"""Inputs larger than this get `FEW_VARIATIONS` secretly chosen variations, not `MANY_VARIATIONS`:
the judge's float64 reference on large inputs takes seconds."""
FEW_VARIATIONS = 3
"""Parts that differ, and one of either kind."""
MANY_VARIATIONS = 6
"""Variations of a case among several; a single case gets all. Two cases together get all, too."""
UNTIMED_VARIATIONS = ("nominal", "scale_down", "below_half_range")
"""Variations that timed calls do not get in addition to nominal inputs. The tolerance of smaller
inputs is known only after the judge has evaluated the reference in float64."""
VARIATIONS_S = 12.0
"""Seconds after which no further variation is begun. Nominal samples and `FEW_VARIATIONS`
variations of each case are always made: a candidate that is slow at first must meet them too."""


def check_correctness(session: EvaluationSession) -> None:
    """Call the candidate on every planned input sample, and record what it shows."""
    with session.stage(Stage.CORRECTNESS):
        runner, problem = session.runners.runners["candidate"], session.request.problem
        official = session.request.protocol == "official"
        runner.stage = Stage.CORRECTNESS
        if official:
            for case in problem.cases:
                for trial in range(TRIALS[problem.official_comparison]):
                    _check_sample(session, case, "nominal", trial)
        else:
            _check_strictly(session)
        if session.observations.correctness.unreproduced is not None:
            raise EvaluationEnded(session.observations.correctness.unreproduced)
        runner.judged = True
        keep_call_shapes(session, session.observations.correctness.calls)
        if official and session.runners.problem.is_module:
            _label_constant_folding(session)


def _check_strictly(session: EvaluationSession) -> None:
    problem, start = session.request.problem, time.monotonic()
    sizes = {case.name: _check_sample(session, case, "nominal") for case in problem.cases}
    for case in hidden_cases(problem, session.context.choices("sizes")):
        _check_sample(session, case, "nominal")
    for number, case in enumerate(problem.cases):
        _check_variations(session, number, sizes[case.name], start)
    _label_variations(session)


def _check_variations(session: EvaluationSession, number: int, size: int, start: float) -> None:
    """Check variations of a case, until as many were judged as it gets."""
    problem, cases = session.request.problem, session.observations.cases
    limit, judged = FEW_VARIATIONS if size > SMALL_BYTES else MANY_VARIATIONS, 0
    if size <= SMALL_BYTES and len(problem.cases) == 1:
        limit = len(INPUT_VARIATIONS)
    for variation in _variations(session, number, size):
        late = judged >= FEW_VARIATIONS and time.monotonic() - start > VARIATIONS_S
        if late or judged >= limit:
            break
        _check_sample(session, problem.cases[number], variation)
        judged += cases[-1].result != "skipped"


def _label_variations(session: EvaluationSession) -> None:
    """Label a report in which no variation was judged."""
    varied = [item for item in session.observations.cases if item.input_variation != "nominal"]
    if any(item.result != "skipped" for item in varied):
        return
    reasons = sorted({item.detail for item in varied}) or ["the problem allows none"]
    detail = f"0 of {len(varied)} input variations were judged: {'; '.join(reasons)}"
    session.add_label(LabelName.NO_VARIATION_JUDGED, detail)


def _variations(session: EvaluationSession, number: int, size: int) -> list[str]:
    """Return the variations of a case in the order in which they are tried.

    Size decides about the order, because a busy machine must not check less. Neighbouring cases
    begin at opposite ends of one secret order, so that each variation is judged on some case.
    """
    names = allowed_variations(session.request.problem.input_variations)
    choices = session.context.choices("variations")
    choices.shuffle(names)
    signed, sized = [n for n in names if n in SIGNED], [n for n in names if n not in SIGNED]
    if size > SMALL_BYTES:
        choices = session.context.choices("variations", number)
        choices.shuffle(signed)
        choices.shuffle(sized)
    elif number % 2:
        signed, sized = signed[::-1], sized[::-1]
    sized.sort(key=lambda name: name != PARTS)
    # In turn, so that the few that are always checked are of either kind.
    order = zip_longest(sized[:1], signed[:1], sized[1:2], signed[1:2])
    first = [name for pair in order for name in pair if name is not None]
    return [*first, *sized[2:], *signed[2:]]


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
        inside = [size for size in (declared - 1, declared + 1) if low <= size <= high]
        size = choices.choice(inside or [declared])
    else:
        top = max(min(declared, high), low)
        size = round(max(low, 1) * (top / max(low, 1)) ** choices.random())
        size |= choices.random() < ODD_SHARE
    return min(max(size, low), high)


def _check_sample(session: EvaluationSession, case: Case, variation: str, repeat: int = 0) -> int:
    """Check one input sample; return the size of its inputs in bytes."""
    pool, seen = session.runners, session.observations.correctness
    sample = session.judge.sample(case, variation, repeat)
    layout, cases = sample.layout, session.observations.cases
    session.context.emit("sample", {"case": case.name, "variation": variation})
    if layout.skipped:
        cases.append(_record(sample, "skipped", layout.skipped))
        session.judge.forget(sample)
        return layout.size
    language = session.request.candidate.language
    if not session.on_gpu and language == "triton" and "bfloat16" in sample.dtypes():
        message = "Triton's CPU interpreter computes bfloat16 wrongly; judge it on a GPU"
        reason = UnjudgedReason.BF16_UNSUPPORTED_IN_INTERPRETER
        raise EvaluationEnded.unjudged(reason, message)
    runner, slot = pool.runners["candidate"], _slot(session, case, variation, repeat)
    try:
        made = pool.call(runner, sample, slot)
        if not seen.launches or _is_last(session, case, variation, repeat):
            seen.record_counted(pool.count_operators(runner, sample), sample)
    except EvaluationEnded as ended:
        message = getattr(ended.outcome, "message", ended.outcome.verdict)
        cases.append(_record(sample, "fail", message[:500]))
        raise
    origin = _origin(session, case, variation)
    if origin is InputOrigin.NOMINAL:
        seen.record_nominal(sample)
    answer = made.answer
    seen.record(made)
    detail = answer.message or ("; ".join(answer.mutated) and f"overwrote {answer.mutated}")
    if answer.wrong:
        cases.append(_record(sample, "fail", detail))
        _end_wrong(session, sample, origin, answer)
        return layout.size
    cases.append(_record(sample, "pass", detail, answer.error))
    if layout.variation not in UNTIMED_VARIATIONS:
        pool.usable_variations.setdefault(case.name, []).append(layout.variation)
    session.judge.forget(sample)
    return layout.size


def _end_wrong(
    session: EvaluationSession, sample: InputSampleInfo, origin: InputOrigin, answer: CallAnswer
) -> None:
    """End the evaluation with a wrong output, unless only random numbers may be others.

    Then a later call may show that the candidate draws none.

    Raises:
        EvaluationEnded: the output is wrong, or cannot be judged.
    """
    if _leaves_half_range(session, sample):
        text = "right on nominal inputs, wrong where values leave the range of float16"
        session.add_label(LabelName.HALF_PRECISION, text)
    session.judge.forget(sample)
    outcome, seen = _wrong(sample, origin, answer), session.observations.correctness
    if getattr(outcome, "reason", None) != UnjudgedReason.NONDETERMINISTIC_REFERENCE:
        raise EvaluationEnded(outcome)
    seen.unreproduced = seen.unreproduced or outcome


def _is_last(session: EvaluationSession, case: Case, variation: str, repeat: int) -> bool:
    """Tell whether this is the nominal sample of the last case, which is the largest one mostly."""
    return (case, variation, repeat) == (session.request.problem.cases[-1], "nominal", 0)


def _leaves_half_range(session: EvaluationSession, sample: InputSampleInfo) -> bool:
    """Tell whether float32 values were wrong that float16 cannot hold, and right when scaled less.

    Other code overflows, too: an exponential does so at 89.
    """
    if sample.variation.partition("/")[0] not in HALF_RANGE or "float32" not in sample.dtypes():
        return False
    return any(
        item.case == sample.case
        and item.result == "pass"
        and item.input_variation in ("scale", "scale_down")
        for item in session.observations.cases
    )


def _slot(session: EvaluationSession, case: Case, variation: str, repeat: int) -> int:
    """Choose a slot: the first one of a case twice in a row, then any."""
    slots = session.observations.correctness.slots
    slot = slots.pop(case.name, None)
    if slot is None:
        slot = session.context.choices("slot", case.name, variation, repeat).randrange(SLOTS)
        if variation == "nominal" and repeat == 0:
            slots[case.name] = slot
    return slot


def _origin(session: EvaluationSession, case: Case, variation: str) -> InputOrigin:
    if case not in session.request.problem.cases:
        return InputOrigin.HIDDEN_SIZE
    return InputOrigin.NOMINAL if variation == "nominal" else InputOrigin.VARIED


def _wrong(
    sample: InputSampleInfo, origin: InputOrigin, answer: CallAnswer
) -> Unjudged | Incorrect:
    where, layout = f"{sample.case}, {sample.variation}", sample.layout
    other_values = answer.wrong in (IncorrectKind.VALUES, IncorrectKind.NONFINITE)
    if layout.stateful and other_values:
        message = (
            f"{where}: the reference answers the same inputs and seed differently from call to "
            "call, and the candidate differs from it: a kept state cannot be compared"
        )
        return Unjudged(reason=UnjudgedReason.STATEFUL_REFERENCE, message=message)
    if layout.random and other_values and not answer.repeated:
        message = (
            f"{where}: the reference draws random numbers and the candidate does not reproduce "
            "the stream of the public forward seed"
        )
        return Unjudged(reason=UnjudgedReason.NONDETERMINISTIC_REFERENCE, message=message)
    again = "the outputs are those of an earlier call; " if answer.repeated else ""
    return Incorrect(
        kind=answer.wrong,
        case=where,
        inputs=origin,
        message=f"{again}{answer.message}",
        error_over_tolerance=answer.error,
    )


def _record(
    sample: InputSampleInfo, verdict: str, detail: str, error: float | None = None
) -> CaseResult:
    return CaseResult(
        case=sample.case,
        input_variation=sample.variation,
        result=verdict,
        detail=detail,
        error_over_tolerance=error,
        oracle=sample.layout.oracle,
        seed=str(sample.seed),
    )


def _label_constant_folding(session: EvaluationSession) -> None:
    """Label a candidate whose result ignores new weights, which the published rules accept."""
    session.judge.request(ResetWeights())
    sample = (session.request.problem.cases[0], "nominal", 0)
    right = passes_when_fresh(session, [sample], session.runners.load_weights)
    session.judge.request(ResetWeights())
    if right is False:
        detail = "wrong once other weights are loaded; the published rules never load any"
        session.add_label(LabelName.WEIGHTS_CONSTANT_FOLDED, detail)
