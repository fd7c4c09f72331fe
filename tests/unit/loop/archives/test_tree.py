"""The tree against KernelEvolve's rules: UCT's fixture, selectors, buggy nodes, statistics."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tilewright.loop.archives.tree import Tree, greedy, lineage, tournament, uct, uct_score

ROOT_2 = math.sqrt(2)
SPEEDUP = st.floats(0.0, 20.0, allow_subnormal=False)
"""The inverse of a subnormal number is infinite; no speed-up is so small."""
GROWTH = st.lists(st.tuples(st.integers(0, 40), SPEEDUP, st.booleans()), min_size=1, max_size=40)


def grown(growth, **limits):
    """Return a tree; each entry names the place of the parent, the fitness, and a bug."""
    tree = Tree(3, **limits)
    for number, (parent, fitness, buggy) in enumerate(growth):
        above = None if number == 0 or parent >= number else f"n{parent}"
        tree.expect(above)
        tree.settle(above, judged=True)
        tree.add(f"n{number}", above, fitness, buggy=buggy)
    return tree


def test_uct_has_the_values_of_the_fixture():
    children = [(0.5, 5), (0.4, 2), (0.0, 0)]
    before = [uct_score(value, visits, 10, ROOT_2) for value, visits in children]
    assert max(range(3), key=before.__getitem__) == 2
    assert before[2] == math.inf
    children[2] = (0.0, 1)
    after = [uct_score(value, visits, 11, ROOT_2) for value, visits in children]
    assert after == pytest.approx([1.479, 1.949, 2.190], abs=6e-4)


@given(GROWTH, st.sampled_from(["max", "mean"]), st.floats(0.0, 3.0))
def test_uct_takes_the_node_with_the_highest_score(growth, value, exploration):
    tree = grown(growth)
    best = tree.best()
    scale = best.fitness if best is not None and best.fitness > 0 else 1.0
    scores = {}
    for node in tree.nodes():
        above = tree.visits if node.parent is None else node.parent.visits
        quality = node.highest if value == "max" else node.total / node.visits
        score = uct_score(quality / scale, node.visits, above, exploration)
        if not (node.buggy and node.debug_depth >= 3):
            scores[node.name] = score
    taken = uct(tree, exploration, value)
    if not scores:
        assert taken is None
    else:
        assert scores[taken.name] == pytest.approx(max(scores.values()))


@given(GROWTH)
def test_statistics_of_a_node_are_those_of_its_subtree(growth):
    tree = grown(growth)
    below = {node.name: [] for node in tree.nodes()}
    for node in tree.nodes():
        for above in node.upwards():
            below[above.name].append(node.fitness)
    for node in tree.nodes():
        assert node.visits == len(below[node.name])
        assert node.total == pytest.approx(sum(below[node.name]))
        assert node.highest == max(below[node.name])
        assert node.pending == 0
        assert node.attempts == len(node.children)
    assert tree.visits == len(growth)
    assert tree.pending == 0


@given(GROWTH, st.integers(0, 40), st.floats(0.0, 20.0), st.booleans())
def test_a_further_trial_leaves_the_statistics_of_a_tree_that_had_it_first(
    growth, place, fitness, buggy
):
    place %= len(growth)
    tree = grown(growth)
    tree.rescore(f"n{place}", fitness, buggy=buggy)
    other = [*growth]
    other[place] = (growth[place][0], fitness, buggy)
    for node, same in zip(tree.nodes(), grown(other).nodes(), strict=True):
        assert (node.fitness, node.buggy, node.highest) == (same.fitness, same.buggy, same.highest)
        assert node.total == pytest.approx(same.total)
    assert [node.name for node in tree.ranked()] == [node.name for node in grown(other).ranked()]


def test_pending_requests_send_the_next_one_elsewhere():
    growth = [(9, 1.0, False), (9, 1.0, False), (9, 1.0, False)]
    tree = grown(growth)
    taken = []
    for _ in range(6):
        name = uct(tree, ROOT_2, "max").name
        tree.expect(name)
        taken.append(name)
    assert Counter(taken) == {"n0": 2, "n1": 2, "n2": 2}
    for name in taken:
        tree.settle(name, judged=False)
    assert [node.attempts for node in tree.nodes()] == [0, 0, 0]
    assert uct(tree, ROOT_2, "max").name == "n0"


@given(GROWTH)
def test_the_best_node_is_the_fittest_that_is_not_buggy(growth):
    tree = grown(growth)
    good = [(-fitness, number) for number, (_, fitness, buggy) in enumerate(growth) if not buggy]
    best = tree.best()
    assert (best and best.name) == (f"n{min(good)[1]}" if good else None)
    if good:
        assert greedy(tree) is best
    assert all(not node.buggy for node in tree.ranked())


def test_failures_have_no_fitness_and_stay_in_the_tree():
    tree = grown([(9, 7.0, True), (0, 3.0, True), (1, 2.0, False)])
    assert [node.fitness for node in tree.nodes()] == [0.0, 0.0, 2.0]
    assert [node.debug_depth for node in tree.nodes()] == [0, 1, 2]
    assert lineage(tree.node("n2")) == ("n0", "n1", "n2")


def test_a_buggy_node_is_repaired_three_times_in_a_row_at_most():
    chain = [(9, 0.0, True), (0, 0.0, True), (1, 0.0, True), (2, 0.0, True)]
    tree = grown(chain)
    assert [tree.is_open(node) for node in tree.nodes()] == [True, True, True, False]
    # The one with the fewest repairs comes first.
    for name in ("n0", "n1", "n2"):
        assert greedy(tree).name == name
        tree.expect(name)
    draws = {tournament(tree, 9, random.Random(seed)).name for seed in range(20)}
    assert draws == {"n0"}
    assert uct(tree, ROOT_2, "max").name != "n3"


def test_an_exhausted_node_is_left_and_a_tree_without_open_nodes_says_so():
    tree = grown([(9, 5.0, False), (9, 4.0, False)], max_children=1)
    assert greedy(tree).name == "n0"
    tree.expect("n0")
    assert greedy(tree).name == "n1"
    assert uct(tree, ROOT_2, "max").name == "n1"
    tree.expect("n1")
    assert greedy(tree) is None
    assert uct(tree, ROOT_2, "max") is None
    assert tournament(tree, 3, random.Random(0)) is None


def test_a_tournament_ranks_nodes_by_fitness():
    tree = grown([(9, float(number), False) for number in range(5)])
    assert tournament(tree, 5, random.Random(0)).name == "n4"
    seen = Counter(tournament(tree, 2, random.Random(seed)).name for seed in range(10_000))
    # Of two drawn from five, the j-th worst wins with probability (j - 1) / 10.
    assert seen["n0"] == 0
    wins = [seen[f"n{number}"] for number in range(1, 5)]
    assert stats.chisquare(wins, [1_000, 2_000, 3_000, 4_000]).pvalue > 0.01


def test_a_repeated_program_counts_as_a_visit_and_is_no_node():
    tree = grown([(9, 1.0, False), (0, 2.0, False)])
    tree.repeat("n1", 2.0)
    assert len(tree) == 2
    assert [node.visits for node in tree.nodes()] == [3, 2]
    assert tree.visits == 3
