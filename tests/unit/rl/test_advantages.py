"""Returns and advantages against golden vectors, and what is masked."""

import itertools
import math

import pytest
import torch

from tilewright.errors import ConfigError, RecordError
from tilewright.rl.advantages import group_mean, leave_one_out, reinforce, turn_groups
from tilewright.rl.masked_tensors import Masked, listed, masked
from tilewright.rl.returns import discounted, of_trajectories


def near(table, wanted):
    for row, row_wanted in zip(listed(table), wanted, strict=True):
        for value, value_wanted in zip(row, row_wanted, strict=True):
            assert (value is None) == (value_wanted is None), (row, row_wanted)
            assert value is None or value == pytest.approx(value_wanted, abs=1e-12)


def one_group(values):
    """Return a group's returns as one column of turns: all of one prompt, all at turn 0."""
    table = masked([[value] for value in values])
    return table, torch.zeros(len(values), 1, dtype=torch.int64)


def column(table):
    return [row[0] for row in listed(table)]


@pytest.mark.parametrize(
    ("rewards", "gamma", "wanted"),
    [
        ([0, 0.9, 1.6], 1.0, [2.5, 2.5, 1.6]),
        ([0, 0.9, 1.6], 0.0, [0, 0.9, 1.6]),
        ([1, 0, 2], 0.5, [1.5, 1.0, 2.0]),
        ([1.0, None, 2.0], 1.0, [None, None, 2.0]),
    ],
)
def test_golden_returns(rewards, gamma, wanted):
    near(discounted(masked([rewards]), gamma=gamma), [wanted])


def test_an_unjudged_turn_excludes_earlier_turns_or_the_trajectory():
    rewards = masked([[1.0, None, 2.0], [1.0, 1.0, 1.0]])
    near(discounted(rewards), [[None, None, 2.0], [3.0, 2.0, 1.0]])
    near(discounted(rewards, unjudged="trajectory"), [[None] * 3, [3.0, 2.0, 1.0]])
    assert of_trajectories(rewards).known.tolist() == [False, True]


def test_an_absent_turn_has_no_return_and_excludes_no_other():
    rewards = masked([[1.0, 2.0, None], [None, 4.0, 1.0]])
    present = torch.tensor([[True, True, False], [False, True, True]])
    near(discounted(rewards, present), [[3.0, 2.0, None], [None, 5.0, 1.0]])
    whole = of_trajectories(rewards, present, gamma=0.5)
    assert whole.values.tolist() == [2.0, 2.25]
    assert whole.known.all()


def test_a_trajectory_without_turns_has_no_return():
    nothing = torch.zeros(1, 2, dtype=torch.bool)
    assert not of_trajectories(masked([[None, None]]), nothing).known.any()
    assert not discounted(masked([[None, None]]), nothing).known.any()


def test_returns_refuse_invalid_arguments():
    rewards = masked([[1.0, 2.0]])
    with pytest.raises(ConfigError, match="gamma"):
        discounted(rewards, gamma=1.5)
    with pytest.raises(RecordError, match="absent"):
        discounted(rewards, torch.tensor([[True, False]]))
    with pytest.raises(RecordError, match="present"):
        discounted(rewards, torch.tensor([True, True]))
    with pytest.raises(RecordError, match="dimensions"):
        discounted(Masked(torch.ones(2), torch.ones(2, dtype=torch.bool)))


def test_a_known_value_must_be_a_number():
    known = torch.tensor([True, False])
    Masked(torch.tensor([1.0, math.nan]), known)
    with pytest.raises(RecordError, match="finite"):
        Masked(torch.tensor([math.nan, 1.0]), known)
    with pytest.raises(RecordError, match="floating"):
        Masked(torch.tensor([1, 2]), known)
    with pytest.raises(RecordError, match="shape"):
        Masked(torch.tensor([1.0]), known)


@pytest.mark.parametrize(
    ("returns", "wanted"),
    [
        ([2.5, 1.6, 0.9, 0.0], [5 / 3, 7 / 15, -7 / 15, -5 / 3]),
        ([2.0], [2.0]),
        ([1.0, 1.0, 1.0], [0.0, 0.0, 0.0]),
        ([2.5, 1.6, None, 0.0], [1.7, 0.35, None, -2.05]),
    ],
)
def test_golden_trloo(returns, wanted):
    assert column(leave_one_out(*one_group(returns))) == pytest.approx(wanted, abs=1e-12)


def test_golden_grpo():
    table, group = one_group([2.5, 1.6, 0.9, 0.0])
    assert column(group_mean(table, group)) == pytest.approx([1.25, 0.35, -0.35, -1.25])


def test_equal_returns_give_exact_zeros_whatever_their_size():
    for value in (0.1, 1.1, 1e9 + 0.1):
        table, group = one_group([value] * 7)
        assert column(leave_one_out(table, group)) == [0.0] * 7
        assert column(group_mean(table, group, divide_by_std=True)) == [0.0] * 7


@pytest.mark.parametrize("ddof", [0, 1])
def test_grpo_over_the_standard_deviation(ddof):
    values = [2.5, 1.6, 0.9, 0.0]
    table, group = one_group(values)
    spread = torch.tensor(values, dtype=torch.float64).std(correction=ddof).item()
    wanted = [(value - 1.25) / (spread + 1e-6) for value in values]
    assert column(group_mean(table, group, divide_by_std=True, ddof=ddof)) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("singleton_advantage", "wanted"), [("return", 2.0), ("zero", 0.0), ("none", None)]
)
def test_a_group_of_one_gets_the_configured_advantage(singleton_advantage, wanted):
    table, group = one_group([2.0, None])
    for found in (
        leave_one_out(table, group, singleton_advantage=singleton_advantage),
        group_mean(table, group, singleton_advantage=singleton_advantage),
        group_mean(table, group, singleton_advantage=singleton_advantage, divide_by_std=True),
    ):
        assert column(found) == [wanted, None]


def test_reinforce_has_no_baseline():
    assert column(reinforce(one_group([2.0, None, -1.0])[0])) == [2.0, None, -1.0]


def test_a_prompt_that_is_drawn_twice_makes_two_groups_and_so_does_each_turn():
    groups = turn_groups(torch.tensor([70, 3, 70]), 2)
    assert groups.tolist() == [[2, 3], [0, 1], [2, 3]]
    returns = masked([[3.0, 1.0], [9.0, 9.0], [1.0, 5.0]])
    assert listed(leave_one_out(returns, groups)) == [[2.0, -4.0], [9.0, 9.0], [-2.0, 4.0]]


def test_advantages_refuse_invalid_arguments():
    table, group = one_group([1.0, 2.0])
    with pytest.raises(RecordError, match="integers"):
        leave_one_out(table, group.to(torch.float32))
    with pytest.raises(RecordError, match="shape"):
        leave_one_out(table, group[:1])
    with pytest.raises(ConfigError, match="epsilon"):
        group_mean(table, group, divide_by_std=True, epsilon=0.0)
    with pytest.raises(ConfigError, match="ddof"):
        group_mean(table, group, ddof=2)


@pytest.mark.parametrize("count", [2, 4, 6])
def test_leave_one_out_is_unbiased_and_the_mean_shrinks_by_one_over_n(count):
    """Every way in which `count` rollouts may fall on three arms, each weighted by its chance."""
    logits = torch.tensor([0.3, -0.5, 0.9], dtype=torch.float64)
    chance = logits.softmax(0)
    paid = torch.tensor([1.0, 0.2, 2.5], dtype=torch.float64)
    score = torch.eye(3, dtype=torch.float64) - chance
    true = (chance[:, None] * score * paid[:, None]).sum(0)
    arms = torch.tensor(list(itertools.product(range(3), repeat=count)))
    weight = chance[arms].prod(-1)
    group = torch.arange(len(arms))[:, None].expand_as(arms)
    returns = Masked(paid[arms], torch.ones_like(arms, dtype=torch.bool))
    for found, wanted in (
        (leave_one_out(returns, group), 1.0),
        (group_mean(returns, group), 1.0 - 1.0 / count),
    ):
        gradient = (found.values[..., None] * score[arms]).mean(1)
        mean = (weight[:, None] * gradient).sum(0)
        assert torch.allclose(mean, wanted * true, rtol=1e-9, atol=1e-12)
