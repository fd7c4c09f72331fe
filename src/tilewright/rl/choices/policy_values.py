"""The value of a model's policy on an action tree, with those of policies that need no model.

Without a history in prompts the state is the program, and the value is exact. With one, it is the
mean return of played episodes.
"""

from __future__ import annotations

import statistics

from tilewright.rl.choices.action_tree import ActionTree
from tilewright.rl.choices.choice_batches import ChoiceModel, ChoicePlay, rules_of
from tilewright.rl.choices.choice_episodes import Position, state_messages
from tilewright.rl.choices.tree_values import (
    Chances,
    best,
    first_action,
    greedy,
    of_nodes,
    root_value,
    uniform,
)
from tilewright.rl.presets import Preset
from tilewright.rl.trajectories import trajectories_of

BASELINES: dict[str, Chances] = {"best": best, "uniform": uniform, "first_action": first_action}


def policy_values(
    tree: ActionTree, preset: Preset, model: ChoiceModel, seed: int, batch: str
) -> dict[str, float]:
    """Return the values from the root, by policy: `greedy`, `sampled` and those of `BASELINES`.

    `greedy` takes the most likely sentence, as a search does, and `sampled` draws one. Played
    episodes are named after `batch`, and their number is `evaluation.samples`.
    """
    rules = rules_of(preset)
    found = {name: root_value(tree, rules, chances) for name, chances in BASELINES.items()}
    if preset.choices.history:
        return found | {
            name: _played(tree, preset, model, seed, f"{batch}-{name}", greedy=name == "greedy")
            for name in ("greedy", "sampled")
        }
    table = _table(tree, preset, model)
    policies = {"greedy": greedy(table), "sampled": of_nodes(table)}
    return found | {name: root_value(tree, rules, item) for name, item in policies.items()}


def _table(tree: ActionTree, preset: Preset, model: ChoiceModel) -> dict[str, list[float]]:
    """Return the probabilities of each correct program's sentences."""
    nodes = [node for node in tree.nodes if node.is_correct]
    states = [
        model.encode(state_messages(Position(tree, node), 0), node.sentences) for node in nodes
    ]
    rule = preset.choices.normalisation
    scored = zip(nodes, model.score(states), strict=True)
    return {node.id: made.chances(node.sentences, rule) for node, made in scored}


def _played(
    tree: ActionTree, preset: Preset, model: ChoiceModel, seed: int, batch: str, *, greedy: bool
) -> float:
    play = ChoicePlay({tree.problem: tree}, preset, seed, greedy=greedy)
    trajectories = trajectories_of(batch, [tree.problem], preset.evaluation.samples, 0)
    returns = [
        sum(preset.returns.gamma**n * item.outcome.reward for n, item in enumerate(made.decisions))
        for made in play.play(trajectories, model)
    ]
    return statistics.fmean(returns)
