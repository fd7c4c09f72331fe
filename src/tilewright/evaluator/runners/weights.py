"""New weights for reference and runners, in messages to the judge and to the runner."""

from __future__ import annotations

from tilewright.evaluator.judge_client.messages import (
    ApplyWeights,
    MatchWeights,
    PlanWeights,
    PublishWeights,
)
from tilewright.evaluator.runners.pool import RunnerPool

__all__ = ["load_weights", "match_and_publish"]


def load_weights(pool: RunnerPool, name: str) -> list[str]:
    """Load the new weights that a runner can hold, also into the reference; return the others."""
    _match_weights(pool, name)
    applied = pool.judge.request(ApplyWeights([name]))
    pool.weights_bytes = applied.bytes
    _publish_weights(pool, name)
    return applied.lacking


def match_and_publish(pool: RunnerPool, name: str) -> None:
    """Load the weights that are applied already into one more runner."""
    if pool.has_weights:
        _match_weights(pool, name)
        _publish_weights(pool, name)


def _match_weights(pool: RunnerPool, name: str) -> None:
    """Let the judge find out which of a runner's weights are which of the reference's."""
    runner = pool.runners[name]
    seed = pool.context.seed("weights")
    plan = pool.judge.request(PlanWeights(name, seed, runner.entries))
    if plan.need:
        places = runner.read_weights(plan.need)
        pool.judge.request(MatchWeights(name, plan.need, places))


def _publish_weights(pool: RunnerPool, name: str) -> None:
    runner = pool.runners[name]
    pool.reserve_inputs(runner, pool.weights_bytes)
    tree = pool.judge.request(PublishWeights(name)).tree
    timeout_s = pool.context.request.limits.load_s
    runner.ask("weights", {"tree": tree, "base": 0}, timeout_s=timeout_s)
