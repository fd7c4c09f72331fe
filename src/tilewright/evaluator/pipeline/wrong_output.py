"""Why an output was wrong: the candidate is called in new processes, with other weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from tilewright.errors import ProblemOutOfMemory
from tilewright.evaluator.judge_client.messages import ResetWeights
from tilewright.evaluator.pipeline.requested_builds import caused_by_build
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.runners.messages import EvaluationEnded
from tilewright.records import Case, Failed, Incorrect, Outcome
from tilewright.records.codes import IncorrectKind, Stage

FRESH_RUNNER = "candidate-again"
"""Name of the process in which the candidate is called once more."""
OTHER_REPEAT = 1
"""Number of the nominal sample that is called before the wrong one: the stage uses number 0."""

Planned = tuple[Case, str, int]
"""Case, input variation and number of an input sample."""


def find_cause(session: EvaluationSession) -> None:
    """Call the candidate on the wrong sample in new processes, and record what is shown.

    A process that got new weights before its first call decides. If the candidate is wrong there,
    and right with its initial weights, it folds weights. If it is right there, and wrong on the
    same sample after another call, it keeps something of its first call. Anything else shows no
    cause.
    """
    seen, failed = session.observations, _failed_sample(session)
    if failed is None:
        return
    is_first = all(item.result == "skipped" for item in seen.cases[:-1])
    load_new = session.runners.match_and_publish
    right = not is_first and passes_when_fresh(session, [failed], load_new)
    if right:
        other = (failed[0], "nominal", OTHER_REPEAT)
        later = passes_when_fresh(session, [other, failed], load_new)
        seen.cause.stale_after_first_call = later is False
    elif right is False:
        session.judge.request(ResetWeights())
        seen.cause.passes_with_initial_weights = passes_when_fresh(
            session, [failed], session.runners.load_initial
        )


def _failed_sample(session: EvaluationSession) -> Planned | None:
    """Return the wrong sample; `None`: it has a hidden size, or no sample was wrong."""
    record = next(reversed(session.observations.cases), None)
    if record is None or record.result != "fail":
        return None
    for case in session.request.problem.cases:
        if case.name == record.case:
            return case, record.input_variation.partition("/")[0], 0
    return None


def passes_when_fresh(
    session: EvaluationSession, samples: Sequence[Planned], load: Callable[[str], object]
) -> bool | None:
    """Call the candidate in a new process; tell whether its last output is right.

    `load` gives the process its weights. `None`: the process ended, or was wrong before.
    """
    pool = session.runners
    try:
        runner = pool.start(FRESH_RUNNER, session.request.candidate, build="candidate")
        load(FRESH_RUNNER)
        runner.stage = Stage.CORRECTNESS
        right = True
        for slot, (case, variation, repeat) in enumerate(samples):
            if not right:
                return None
            sample = session.judge.sample(case, variation, repeat)
            if sample.layout.skipped:
                return None
            right = not pool.call(runner, sample, slot).answer.wrong
            session.judge.forget(sample)
        return right
    except EvaluationEnded:
        return None
    finally:
        pool.stop(FRESH_RUNNER)


def explained(session: EvaluationSession, outcome: Outcome) -> Outcome:
    """Return the outcome with its real cause: a failed build, or weights that were kept."""
    seen = session.observations
    if isinstance(outcome, Failed):
        return caused_by_build(session, outcome)
    if isinstance(outcome, Incorrect) and session.runners.has_weights and not seen.times:
        # The outcome is known; its cause is a detail for which memory may be missing.
        with suppress(ProblemOutOfMemory):
            find_cause(session)
        if seen.cause.passes_with_initial_weights:
            return outcome.model_copy(update={"kind": IncorrectKind.WEIGHTS})
    return outcome
