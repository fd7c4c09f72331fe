"""Weights: drawn anew by the judge, then loaded on the reference and on every side."""

from __future__ import annotations

from tilewright.evaluator.pipeline.session import EvaluationSession

__all__ = ["apply_weights", "load_weights", "match_weights", "publish_weights"]


def load_weights(session: EvaluationSession, names: list[str]) -> list[str]:
    """Draw new weights and load them on the reference and on sides; return what they lack."""
    if not session.has_weights:
        return []
    for name in names:
        match_weights(session, name)
    return apply_weights(session, names)


def apply_weights(session: EvaluationSession, names: list[str]) -> list[str]:
    """Load the new weights that all of `names` can hold; return what they lack."""
    applied = session.ask("apply_weights", {"runners": names})
    session.weights_bytes = applied["bytes"]
    for name in names:
        publish_weights(session, name)
    return list(applied["lacking"])


def match_weights(session: EvaluationSession, name: str) -> None:
    """Let the judge find out which of a side's seeded weights are which of its own."""
    runner = session.runners[name]
    fields = {"runner": name, "seed": session.seed("weights")}
    plan = session.ask("plan_weights", fields, body=runner.entries)
    if plan["need"]:
        places = runner.read_weights(plan["need"])
        fields = {"runner": name, "names": plan["need"], "addresses": places}
        session.ask("match_weights", fields)


def publish_weights(session: EvaluationSession, name: str) -> None:
    """Load the applied weights on one side."""
    runner = session.runners[name]
    session.reserve_inputs(runner, session.weights_bytes)
    tree = session.ask("publish_weights", {"runner": name})["tree"]
    runner.ask("weights", {"tree": tree, "base": 0}, timeout_s=session.request.limits.load_s)
