"""One more call of the candidate in a fresh process: does its result depend on the weights?"""

from __future__ import annotations

from tilewright.evaluator.judge_client.messages import ResetWeights
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.runners.ended import EvaluationEnded
from tilewright.evaluator.runners.weights import apply_weights, match_weights

__all__ = ["label_constant_folding", "passes_with_initial_weights"]

RUNNER = "candidate-again"
"""Name of the fresh process."""


def passes_with_initial_weights(session: EvaluationSession) -> bool | None:
    """Evaluate once more, with the weights of the init seed for reference and candidate."""
    session.judge.request(ResetWeights())
    return _passes_in_fresh_runner(session, resampled=False)


def label_constant_folding(session: EvaluationSession) -> None:
    """Label a candidate whose result ignores new weights, which the published rules accept."""
    right = _passes_in_fresh_runner(session, resampled=True)
    session.judge.request(ResetWeights())
    if right is False:
        detail = "wrong once other weights are loaded; the published rules never load any"
        session.add_label("weights_constant_folded", detail)


def _passes_in_fresh_runner(session: EvaluationSession, *, resampled: bool) -> bool | None:
    """Evaluate one nominal sample in a fresh runner; `None`: the runner did not finish."""
    pool = session.runners
    try:
        runner = pool.start(RUNNER, session.request.candidate, build="candidate")
        if resampled:
            match_weights(pool, RUNNER)
            apply_weights(pool, [RUNNER])
        runner.stage = "correctness"
        sample = session.judge.sample(session.request.problem.cases[0], "nominal", 0)
        result = pool.call(runner, sample, 0)
        return not pool.check(runner, sample, 0, result).wrong
    except EvaluationEnded:
        return None
    finally:
        pool.stop(RUNNER)
