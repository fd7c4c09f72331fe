"""Exact values on trees: by hand, against played episodes, and on a graph with a circle."""

import random
import statistics

import pytest

from tests.choice_trees import circle, small_tree
from tilewright.rl.choices.choice_episodes import EpisodeRules, begun, decided
from tilewright.rl.choices.tree_values import (
    best,
    first_action,
    greedy,
    node_values,
    of_nodes,
    root_value,
    uniform,
)


def test_the_best_value_by_hand():
    """Two faster steps, slow to fast to best: 1.6 + gamma (1.6 - 0.05)."""
    rules = EpisodeRules(max_steps=2)
    assert root_value(small_tree(), rules, best) == pytest.approx(1.6 + 0.99 * 1.55)
    one = EpisodeRules(max_steps=1, coder_success=0.75)
    # With errors the exact edit `warps` is better than `tile`, which may not compile.
    assert root_value(small_tree(), one, best) == pytest.approx(1.6)
    assert root_value(small_tree(), one, first_action) == pytest.approx(0.75 * 1.6 - 0.25)
    assert root_value(small_tree(), one, uniform) == pytest.approx(
        (0.75 * 1.6 - 0.25 - 0.4 + 1.6 + 0.0) / 4
    )


@pytest.mark.parametrize("success", [1.0, 0.6])
def test_the_value_of_a_policy_is_the_mean_of_its_episodes(success):
    tree, rules = small_tree(), EpisodeRules(max_steps=5, coder_success=success)
    table = {"slow": [0.4, 0.2, 0.3, 0.1], "fast": [0.5, 0.3, 0.2], "best": [0.7, 0.3]}
    exact, played = root_value(tree, rules, of_nodes(table)), []
    for seed in range(6000):
        draw, position, whole = random.Random(seed), begun(tree), 0.0
        while position is not None:
            node = position.node
            (sentence,) = draw.choices(node.sentences, table[node.id])
            outcome = decided(position, sentence, rules, draw)
            whole += rules.gamma**position.step * outcome.reward
            position = outcome.after
        played.append(whole)
    error = statistics.stdev(played) / len(played) ** 0.5
    assert abs(statistics.fmean(played) - exact) < 4 * error


def test_no_policy_is_better_than_the_best_one():
    tree, rules = small_tree(), EpisodeRules(coder_success=0.8)
    bound = root_value(tree, rules, best)
    for seed in range(50):
        draw = random.Random(seed)
        table = {}
        for node in tree.nodes:
            weights = [draw.random() for _ in node.sentences]
            table[node.id] = [weight / sum(weights) for weight in weights]
        assert root_value(tree, rules, of_nodes(table)) <= bound
        assert root_value(tree, rules, greedy(table)) <= bound


@pytest.mark.parametrize(("decay", "loops"), [(0.0, True), (0.05, False)])
def test_a_rewarding_circle_ends_where_the_decay_has_eaten_the_reward(decay, loops):
    """Without a decay each step earns at least 0.6; with it no step after 32 earns anything."""
    tree, rules = circle(), EpisodeRules(max_steps=64, gamma=0.99, decay=decay)
    steps, node = 0, tree.root
    choices = {}

    def noted(at, step, values):
        made = best(at, step, values)
        choices[at.id, step] = at.sentences[list(made).index(1.0)]
        return made

    root_value(tree, rules, noted)
    while steps < rules.max_steps and choices[node, steps] != "stop":
        node, steps = {"slow": "fast", "fast": "slow"}[node], steps + 1
    assert (steps == rules.max_steps) is loops
    assert loops or steps <= 32


def test_values_after_the_last_step_are_0():
    tables = node_values(small_tree(), EpisodeRules(max_steps=3), uniform)
    assert len(tables) == 4
    assert set(tables[-1].values()) == {0.0}
