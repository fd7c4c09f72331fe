"""Weights: drawn anew by the judge, then loaded on the reference and on every side."""

from __future__ import annotations

from tilewright.evaluator.evaluation import Evaluation

__all__ = ["apply_weights", "load_weights", "match_weights", "publish_weights"]


def load_weights(evaluation: Evaluation, names: list[str]) -> list[str]:
    """Draw new weights and load them on the reference and on sides; return what they lack."""
    if not evaluation.has_weights:
        return []
    for name in names:
        match_weights(evaluation, name)
    return apply_weights(evaluation, names)


def apply_weights(evaluation: Evaluation, names: list[str]) -> list[str]:
    """Load the new weights that all of `names` can hold; return what they lack."""
    applied = evaluation.ask("apply_weights", {"sides": names})
    evaluation.weights_bytes = applied["bytes"]
    for name in names:
        publish_weights(evaluation, name)
    return list(applied["lacking"])


def match_weights(evaluation: Evaluation, name: str) -> None:
    """Let the judge find out which of a side's seeded weights are which of its own."""
    side = evaluation.sides[name]
    fields = {"side": name, "seed": evaluation.seed("weights")}
    plan = evaluation.ask("plan_weights", fields, body=side.entries)
    if plan["need"]:
        places = side.read_weights(plan["need"])
        fields = {"side": name, "names": plan["need"], "addresses": places}
        evaluation.ask("match_weights", fields)


def publish_weights(evaluation: Evaluation, name: str) -> None:
    """Load the applied weights on one side."""
    side = evaluation.sides[name]
    evaluation.make_room(side, evaluation.weights_bytes)
    tree = evaluation.ask("publish_weights", {"side": name})["tree"]
    side.ask("weights", {"tree": tree, "base": 0}, timeout_s=evaluation.request.limits.load_s)
