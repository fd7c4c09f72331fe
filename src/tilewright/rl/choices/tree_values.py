"""Exact values of policies on an action tree, by backward induction over steps. No torch.

The best value is that of value iteration (Bellman 1957): the maximum over actions of the expected
r_t + gamma V_{t+1}(s'). It is 0 for `stop` and after the last step. It bounds every policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tilewright.loop.choices import most_likely
from tilewright.rl.choices.action_tree import ActionNode, ActionTree
from tilewright.rl.choices.choice_episodes import EpisodeRules, outcomes_of, step_rung

Chances = Callable[[ActionNode, int, Sequence[float]], Sequence[float]]
"""The probabilities of a node's sentences at a step; it gets their values under the same policy."""


def root_value(tree: ActionTree, rules: EpisodeRules, chances: Chances) -> float:
    """Return the expected discounted return of a policy from the root, at step 0."""
    return node_values(tree, rules, chances)[0][tree.root]


def node_values(tree: ActionTree, rules: EpisodeRules, chances: Chances) -> list[dict[str, float]]:
    """Return the value of each correct program at each step, from 0 to `max_steps`.

    The table of the last step holds zeros: an episode is over then.
    """
    current = [node for node in tree.nodes if node.is_correct]
    tables = [{node.id: 0.0 for node in current}]
    for step in reversed(range(rules.max_steps)):
        later, found = tables[0], dict[str, float]()
        for node in current:
            values = _action_values(tree, rules, node, step, later)
            weights = chances(node, step, values)
            found[node.id] = sum(w * v for w, v in zip(weights, values, strict=True))
        tables.insert(0, found)
    return tables


def _action_values(
    tree: ActionTree, rules: EpisodeRules, node: ActionNode, step: int, later: dict[str, float]
) -> list[float]:
    """Return the expected return of each sentence of a node; `stop` is the last one."""
    values = []
    for edge in node.edges:
        whole = 0.0
        for name, chance in outcomes_of(edge, rules):
            program = tree.by_id[name]
            reward = rules.reward(step_rung(node, program), step)
            after = name if program.is_correct else node.id
            whole += chance * (reward + rules.gamma * later[after])
        values.append(whole)
    return [*values, 0.0]


def best(node: ActionNode, step: int, values: Sequence[float]) -> Sequence[float]:  # noqa: ARG001 - one signature
    """Take the sentence of the largest value; of equal ones the first."""
    return _certain(most_likely(values), len(values))


def uniform(node: ActionNode, step: int, values: Sequence[float]) -> Sequence[float]:  # noqa: ARG001 - one signature
    """Take each sentence with the same probability."""
    return [1.0 / len(values)] * len(values)


def first_action(node: ActionNode, step: int, values: Sequence[float]) -> Sequence[float]:  # noqa: ARG001 - one signature
    """Take the first sentence."""
    return _certain(0, len(values))


def of_nodes(table: Mapping[str, Sequence[float]]) -> Chances:
    """Return the policy of a table: probabilities by node, the same at each step."""
    return lambda node, step, values: table[node.id]  # noqa: ARG005 - one signature


def greedy(table: Mapping[str, Sequence[float]]) -> Chances:
    """Return the policy that takes the most likely sentence of a table, as a search does."""
    return of_nodes(
        {name: _certain(most_likely(chances), len(chances)) for name, chances in table.items()}
    )


def _certain(place: int, count: int) -> list[float]:
    return [float(number == place) for number in range(count)]
