"""Knock-out: a fresh contestant whose own launches do nothing. Still right means decoy."""

from __future__ import annotations

from tilewright.evaluator.evaluation import Evaluation
from tilewright.evaluator.sides import Ended
from tilewright.records import Case

__all__ = ["knock_out"]

NAME = "candidate-knockout"


def knock_out(evaluation: Evaluation, case: Case) -> bool | None:
    """Return whether the outputs of `case` are right without the candidate's own launches.

    `None` where the candidate did not finish without them, which is no decoy either.
    """
    limits = evaluation.request.candidate
    try:
        side = evaluation.open_side(NAME, limits, knockout=True)
        side.stage = "knockout"
        if evaluation.has_weights:
            evaluation.match_weights(NAME)
            evaluation.publish_weights(NAME)
        drawn = evaluation.draw(case, "nominal", 50)
        result = evaluation.call(side, drawn, 0)
        answer = evaluation.check(side, drawn, 0, result)
        evaluation.forget(drawn)
        return not answer.wrong
    except Ended:
        return None
    finally:
        evaluation.close_side(NAME)
