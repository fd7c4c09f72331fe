"""Smoothed rewards against the golden vectors of CUDA-L1, and the rewards that a log remembers."""

from __future__ import annotations

import math
import statistics

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tilewright.rl.advantages import group_mean, turn_groups
from tilewright.rl.logged_rewards import LoggedReward, RewardLog
from tilewright.rl.masked_tensors import listed, masked
from tilewright.rl.reward_smoothing import smoothed

PLAN = {"window": 256, "clip": 1.5}
EARLIER = {"p": (0.8, 1.6)}
"""Their mean is 1.2 and their standard deviation 0.4."""
GOLDEN = (0.0, 1.3, 1.6, 100.0)


def column(rewards, earlier=EARLIER, **plan):
    table = masked([[value] for value in rewards])
    found = smoothed(table, ["p"] * len(rewards), earlier, **{**PLAN, **plan})
    return [row[0] for row in listed(found)]


def advantages(rewards, ddof):
    table = masked([[value] for value in column(rewards)])
    groups = turn_groups(torch.zeros(len(rewards), dtype=torch.int64), 1)
    found = group_mean(table, groups, divide_by_std=True, ddof=ddof)
    return [row[0] for row in listed(found)]


def test_golden_smoothing():
    assert column(GOLDEN) == pytest.approx([-1.5, 0.25, 1.0, 1.5])


@pytest.mark.parametrize(
    ("ddof", "wanted"),
    [(0, (-1.5940, -0.0550, 0.6046, 1.0443)), (1, (-1.3804, -0.0476, 0.5236, 0.9044))],
)
def test_golden_advantages_of_smoothed_rewards(ddof, wanted):
    assert advantages(GOLDEN, ddof) == pytest.approx(wanted, abs=1e-4)


def test_an_outlier_has_no_more_effect_than_the_clip_allows():
    assert advantages((*GOLDEN[:3], 100.0), 0) == advantages((*GOLDEN[:3], 1000.0), 0)


def test_equal_earlier_rewards_make_every_smoothed_reward_zero():
    assert column((0.0, 5.0), {"p": (1.0, 1.0, 1.0)}) == [0.0, 0.0]
    assert column((2.0, 2.0), {}) == [0.0, 0.0]


def test_a_first_batch_is_relative_to_itself():
    assert column((1.0, 3.0), {"p": (7.0,)}) == pytest.approx([-1.0, 1.0])
    assert column((4.0,), {}) == [0.0]


def test_only_the_last_rewards_count_and_an_unknown_one_stays_unknown():
    assert column((1.6, None), {"p": (50.0, *EARLIER["p"])}, window=2) == [pytest.approx(1.0), None]


@given(
    rewards=st.lists(st.tuples(st.sampled_from("pq"), st.floats(0, 100)), min_size=1, max_size=12),
    earlier=st.dictionaries(st.sampled_from("pq"), st.lists(st.floats(0, 100), max_size=6)),
    window=st.integers(1, 8),
)
def test_smoothing_equals_a_plain_loop(rewards, earlier, window):
    wanted = []
    for problem, value in rewards:
        before = earlier.get(problem, [])[-window:]
        if len(before) < 2:
            before = [other for name, other in rewards if name == problem]
        mean = math.fsum(before) / len(before)
        spread = math.sqrt(math.fsum((item - mean) ** 2 for item in before) / len(before))
        # Rounding decides about a spread far below the values.
        if 0 < spread < 1e-6:
            return
        wanted.append(max(-1.5, min(1.5, (value - mean) / spread)) if spread else 0.0)
    table = masked([[value] for _, value in rewards])
    problems = [problem for problem, _ in rewards]
    found = listed(smoothed(table, problems, earlier, window=window, clip=1.5))
    assert [row[0] for row in found] == pytest.approx(wanted, abs=1e-6)


def test_the_log_gives_the_rewards_of_batches_before_one_in_their_order():
    log = RewardLog()
    log.add("step00001", [LoggedReward("p", 5, 0, 3.0), LoggedReward("p", 4, 0, 2.0)])
    log.add("step00000", [LoggedReward("p", 0, 1, 1.0), LoggedReward("q", 1, 0, 9.0)])
    log.add("step00002", [LoggedReward("p", 8, 0, 4.0)])
    assert log.before("step00002", ["p", "q", "r"], 9) == {
        "p": [1.0, 2.0, 3.0],
        "q": [9.0],
        "r": [],
    }
    assert log.before("step00002", ["p"], 2) == {"p": [2.0, 3.0]}
    assert log.before("step00000", ["p"], 2) == {"p": []}


def test_the_window_of_the_log_equals_the_last_of_all_rewards():
    log, values = RewardLog(), list(map(float, range(23)))
    for number, part in enumerate(_parts(values, 4)):
        rows = [LoggedReward("p", int(value), 0, value) for value in part]
        log.add(f"step{number:05}", reversed(rows))
    for window in (1, 3, 4, 5, 22, 23, 99):
        found = log.before("step99999", ["p"], window)["p"]
        assert found == values[-window:]
    assert statistics.fmean(found) == 11.0


def _parts(values, size):
    return [values[start : start + size] for start in range(0, len(values), size)]
