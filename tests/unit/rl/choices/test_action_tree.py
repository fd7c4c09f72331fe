"""Action trees refuse what has no single meaning, and a file gives equal trees back."""

import pytest
from pydantic import ValidationError

from tests.choice_trees import node, small_tree, timed
from tilewright.errors import ConfigError, RecordError
from tilewright.rl.choices.action_tree import (
    ActionEdge,
    ActionNode,
    ActionTree,
    read_trees,
    write_trees,
)
from tilewright.rl.choices.choice_run import check_trees
from tilewright.rl.choices.family_trees import family_trees
from tilewright.rl.synthetic_verdicts import synthetic_store


def test_a_file_gives_equal_trees_back(tmp_path):
    trees = [small_tree(), small_tree("q")]
    write_trees(tmp_path / "trees.jsonl", trees)
    assert read_trees(tmp_path / "trees.jsonl") == trees


@pytest.mark.parametrize(
    ("edges", "said"),
    [(["go", "go"], "two actions 'go'"), (["stop"], "'stop' ends an episode")],
)
def test_sentences_without_one_meaning_are_refused(edges, said):
    made = [ActionEdge(sentence=text, child="a") for text in edges]
    with pytest.raises(ValidationError, match=said):
        ActionNode(id="a", code="", verdict=timed(1.0), edges=made)


def test_edges_lead_to_nodes_of_the_tree_and_the_root_is_correct():
    with pytest.raises(ValidationError, match="has no node far"):
        ActionTree(problem="p", opening="", root="a", nodes=(node("a", timed(1), go=("far",)),))
    tree = small_tree()
    with pytest.raises(ValidationError, match="the root of the tree of p is not correct"):
        ActionTree(problem="p", opening="", root="wrong", nodes=tree.nodes)


def test_damaged_and_missing_files_are_named(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        read_trees(tmp_path / "none.jsonl")
    path = tmp_path / "trees.jsonl"
    path.write_text("")
    with pytest.raises(ConfigError, match="has no tree"):
        read_trees(path)
    path.write_text("{}\n")
    with pytest.raises(RecordError, match=r"trees\.jsonl:1: "):
        read_trees(path)


def test_held_out_trees_are_about_other_problems():
    check_trees([small_tree()], [small_tree("q")])
    with pytest.raises(ConfigError, match="held_out_trees has a tree of p"):
        check_trees([small_tree()], [small_tree()])
    with pytest.raises(ConfigError, match="two trees of p"):
        check_trees([small_tree(), small_tree()], [])


def test_a_tree_of_the_family_holds_programs_of_the_store_alone(tmp_path):
    store = synthetic_store(tmp_path / "store.gz", "rehearsal")
    for tree in family_trees("rehearsal", store):
        texts = {row.code: row.summary for row in store.rows() if row.problem == tree.problem}
        assert all(item.code in texts for item in tree.nodes)
        slowest = min(item.verdict.speedup for item in tree.nodes if item.is_correct and item.edges)
        assert tree.by_id[tree.root].verdict.speedup == slowest
        assert all(not item.edges for item in tree.nodes if not item.is_correct)
        assert all(edge.failures for item in tree.nodes for edge in item.edges)
        kinds = {item.verdict.verdict for item in tree.nodes}
        assert kinds == {"correct", "incorrect", "failed"}
