"""Episodes: rewards of the ladder, the coder's errors, and the ends of an episode."""

import random

import pytest

from tests.choice_trees import node, small_tree, timed
from tilewright.rl.choices.action_tree import ActionTree
from tilewright.rl.choices.choice_batches import rules_of
from tilewright.rl.choices.choice_episodes import (
    EpisodeRules,
    Position,
    begun,
    decided,
    outcomes_of,
    state_messages,
)
from tilewright.rl.presets import PAPER

RULES = EpisodeRules()


def draw(seed=0):
    return random.Random(seed)


@pytest.mark.parametrize(
    ("reached", "wanted"),
    [("not_compiled", -1.1), ("not_executed", -0.5), ("executed", 0.5), ("faster", 1.5)],
)
def test_golden_rewards_of_the_third_step(reached, wanted):
    """MTMC's figure: rungs add up, and the decay of step t is 0.05 t."""
    rungs = {"not_compiled": -1.0, "not_executed": 0.1 - 0.5, "executed": 0.1 + 0.5}
    rungs["faster"] = rungs["executed"] + 1.0
    assert RULES.reward(reached, 2) == pytest.approx(rungs[reached] - 0.05 * 2)
    assert RULES.reward(reached, 2) == pytest.approx(wanted, abs=1e-4)


def test_a_correct_program_becomes_the_current_one_and_another_does_not():
    position = begun(small_tree())
    fast = decided(position, "tile", RULES, draw())
    assert (fast.reached, fast.after.node.id, fast.after.step) == ("faster", "fast", 1)
    wrong = decided(position, "fuse", RULES, draw())
    assert (wrong.reached, wrong.after.node.id, wrong.after.step) == ("not_executed", "slow", 1)
    assert wrong.program.id == "wrong"
    slow = decided(fast.after, "undo", RULES, draw())
    assert (slow.reached, slow.after.node.id) == ("executed", "slow")
    assert slow.reward == pytest.approx(0.6 - 0.05)


def test_a_failed_edit_is_judged_and_changes_nothing():
    rules = EpisodeRules(coder_success=0.0)
    failed = decided(begun(small_tree()), "tile", rules, draw())
    assert (failed.reached, failed.program.id, failed.after.node.id) == (
        "not_compiled",
        "broken",
        "slow",
    )
    assert failed.after.history == ("- tile: broken",)


def test_the_share_of_failed_edits_is_that_of_the_settings():
    rules, count = EpisodeRules(coder_success=0.7), 4000
    position = Position(small_tree(), small_tree().by_id["best"])
    found = [decided(position, "undo", rules, draw(n)).program.id for n in range(count)]
    edge = position.node.edges[0]
    assert dict(outcomes_of(edge, rules)) == pytest.approx(
        {"slow": 0.7, "broken": 0.15, "wrong": 0.15}
    )
    for name, share in outcomes_of(edge, rules):
        error = (share * (1 - share) / count) ** 0.5
        assert abs(found.count(name) / count - share) < 4 * error


def test_an_episode_ends_with_stop_and_after_its_last_step():
    position = begun(small_tree())
    stopped = decided(position, "stop", RULES, draw())
    assert (stopped.after, stopped.program, stopped.reward) == (None, None, 0.0)
    assert not stopped.is_unknown
    last = Position(position.tree, position.node, step=7)
    assert decided(last, "tile", RULES, draw()).after is None


def test_unknown_sentences_and_programs_without_an_action_count_as_stop():
    unknown = decided(begun(small_tree()), "make it fast", RULES, draw())
    assert unknown.after is None
    assert unknown.is_unknown
    lonely = ActionTree(problem="p", opening="", root="a", nodes=(node("a", timed(1.0)),))
    assert decided(begun(lonely), "stop", RULES, draw()).is_unknown


@pytest.mark.reads_settings
def test_the_prompt_shows_the_last_changes_and_the_rules_follow_the_settings():
    position = Position(small_tree(), small_tree().by_id["slow"], 3, ("- a: 1", "- b: 2", "- c: 3"))
    texts = [item.text for item in state_messages(position, 2)]
    assert texts == ["problem p", "# slow\n", "slow\n- b: 2\n- c: 3"]
    assert state_messages(position, 0)[-1].text == "slow"
    changes = {
        "decay": 0.1,
        "decay_form": "multiplicative",
        "cumulative": False,
        "coder_success": 0.5,
    }
    preset = PAPER.model_copy(
        update={
            "choices": PAPER.choices.model_copy(update=changes),
            "sampling": PAPER.sampling.model_copy(update={"turns": 5}),
            "returns": PAPER.returns.model_copy(update={"gamma": 0.9}),
        }
    )
    assert rules_of(preset) == EpisodeRules(5, 0.9, 0.1, "multiplicative", False, 0.5)
