"""Properties of the estimators, against slow reference implementations."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tilewright.rl.advantages import group_mean, leave_one_out
from tilewright.rl.coverage_sampling import keep, uniform
from tilewright.rl.filters import no_regress, spread_prompts
from tilewright.rl.masked_tensors import Masked, listed, masked
from tilewright.rl.mismatch_sampling import reject
from tilewright.rl.returns import discounted, of_trajectories

NUMBERS = st.floats(-100, 100).map(lambda value: round(value, 4))
REWARDS = st.none() | st.sampled_from([0.0, 1.0, 2.5]) | NUMBERS
TABLES = st.integers(1, 5).flatmap(
    lambda turns: st.lists(
        st.lists(REWARDS, min_size=turns, max_size=turns), min_size=1, max_size=6
    )
)
MEMBERS = st.lists(st.tuples(REWARDS, st.integers(0, 3)), min_size=1, max_size=14)
ESTIMATORS = {
    "trloo": leave_one_out,
    "grpo": group_mean,
    "grpo over std": lambda returns, group: group_mean(returns, group, divide_by_std=True),
    "grpo over std, ddof 0": lambda returns, group: group_mean(
        returns, group, divide_by_std=True, ddof=0
    ),
}
NAMES = st.sampled_from(sorted(ESTIMATORS))
LOGS = st.sampled_from([0.0, 0.0, 1e-4, -1e-3, 1e-3, 0.1, -0.7, -8.0, -12.0, 9.0]) | st.floats(
    -2, 2
)
TURN_LOGS = st.lists(LOGS, min_size=0, max_size=5)
BATCHES = st.integers(1, 3).flatmap(
    lambda turns: st.lists(
        st.lists(TURN_LOGS, min_size=turns, max_size=turns), min_size=1, max_size=5
    )
)


def table_of(members):
    returns = masked([[value] for value, _ in members])
    flat = Masked(returns.values[:, 0], returns.known[:, 0])
    return flat, torch.tensor([group for _, group in members])


def values_of(table):
    return [
        value if known else None
        for value, known in zip(table.values.tolist(), table.known.tolist(), strict=True)
    ]


def same(found, wanted, tolerance=1e-9):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert (one is None) == (other is None), (found, wanted)
        assert one is None or one == pytest.approx(other, rel=tolerance, abs=tolerance)


@given(TABLES, st.sampled_from([0.0, 0.5, 0.9, 1.0]))
def test_returns_are_discounted_sums(table, gamma):
    wanted = []
    for row in table:
        sums = []
        for t in range(len(row)):
            later = row[t:]
            whole = None if None in later else sum(gamma**k * r for k, r in enumerate(later))
            sums.append(whole)
        wanted.append(sums)
    found = listed(discounted(masked(table), gamma=gamma))
    for one, other in zip(found, wanted, strict=True):
        same(one, other)
    same(values_of(of_trajectories(masked(table), gamma=gamma)), [row[0] for row in wanted])


@given(TABLES)
def test_an_unjudged_trajectory_has_no_return(table):
    found = listed(discounted(masked(table), unjudged="trajectory"))
    for row, rewards in zip(found, table, strict=True):
        assert (None in rewards) == (row == [None] * len(row))


def slow_advantages(members, name):
    # In fractions: the mean of equal floats need not be that float, and over a deviation of
    # nothing and 1e-6 the difference would count.
    members = [(None if v is None else Fraction(v), group) for v, group in members]
    found = []
    for place, (value, group) in enumerate(members):
        if value is None:
            found.append(None)
            continue
        mates = [v for k, (v, g) in enumerate(members) if g == group and v is not None]
        others = [
            v for k, (v, g) in enumerate(members) if g == group and v is not None and k != place
        ]
        if not others:
            found.append(float(value) if name == "trloo" else 0.0)
        elif name == "trloo":
            found.append(float(value - sum(others) / len(others)))
        else:
            mean = sum(mates) / len(mates)
            lost = 0 if name == "grpo over std, ddof 0" else 1
            square = sum((v - mean) ** 2 for v in mates) / (len(mates) - lost)
            spread = math.sqrt(square) + 1e-6 if "std" in name else 1.0
            found.append(float(value - mean) / spread)
    return found


@given(MEMBERS, NAMES)
@example([(85.4648, 0)] * 3, "grpo over std")
def test_advantages_are_what_a_loop_over_rows_gives(members, name):
    same(values_of(ESTIMATORS[name](*table_of(members))), slow_advantages(members, name), 1e-8)


@given(MEMBERS, NAMES, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(members, name, random):
    order = list(range(len(members)))
    random.shuffle(order)
    straight = values_of(ESTIMATORS[name](*table_of(members)))
    mixed = values_of(ESTIMATORS[name](*table_of([members[place] for place in order])))
    same(mixed, [straight[place] for place in order])


@given(MEMBERS, NAMES)
def test_the_advantages_of_a_group_sum_to_zero(members, name):
    returns, group = table_of(members)
    found = ESTIMATORS[name](returns, group)
    for each in set(group.tolist()):
        inside = found.known & (group == each)
        if int(inside.sum()) > 1:
            assert found.values[inside].sum().item() == pytest.approx(0.0, abs=1e-9)


@given(MEMBERS, st.floats(-1e6, 1e6))
def test_adding_a_constant_to_a_group_does_not_change_advantages(members, shift):
    raised = [(None if value is None else value + shift, group) for value, group in members]
    for name in ("trloo", "grpo"):
        options = {"singleton_advantage": "none"}
        function = leave_one_out if name == "trloo" else group_mean
        one = values_of(function(*table_of(members), **options))
        same(values_of(function(*table_of(raised), **options)), one, 1e-6)


@given(MEMBERS)
def test_trloo_equals_the_mean_baseline_without_shrinkage(members):
    returns, group = table_of(members)
    trloo, grpo = leave_one_out(returns, group), group_mean(returns, group)
    count = torch.zeros(4).index_add(0, group, returns.known.float())[group].double()
    pairs = trloo.known & (count > 1)
    wanted = (count / (count - 1)) * grpo.values
    assert torch.allclose(trloo.values[pairs], wanted[pairs], atol=1e-9)


@given(MEMBERS, NAMES, st.sampled_from([math.nan, math.inf, 7.0]))
def test_values_of_unknown_entries_have_no_influence(members, name, filling):
    returns, group = table_of(members)
    filled = Masked(torch.where(returns.known, returns.values, filling), returns.known)
    one, other = ESTIMATORS[name](returns, group), ESTIMATORS[name](filled, group)
    assert torch.equal(one.values, other.values)
    assert torch.equal(one.known, other.known)
    rows = [Masked(each.values[None], each.known[None]) for each in (returns, filled)]
    assert torch.equal(*(discounted(row).values for row in rows))


@given(MEMBERS, NAMES)
def test_returns_in_float32_give_the_answer_of_float64(members, name):
    returns, group = table_of(members)
    short = Masked(returns.values.to(torch.float32), returns.known)
    # Compared after rounding: what float32 cannot hold is not the estimator's to restore.
    exact = Masked(short.values.to(torch.float64), returns.known)
    found, wanted = ESTIMATORS[name](short, group), ESTIMATORS[name](exact, group)
    assert found.values.dtype == torch.float64
    assert torch.equal(found.values, wanted.values)


def log_table(batch):
    longest = max([1, *(len(turn) for trajectory in batch for turn in trajectory)])
    logs = torch.full((len(batch), len(batch[0]), longest), math.nan, dtype=torch.float64)
    generated = torch.zeros(logs.shape, dtype=torch.bool)
    for b, trajectory in enumerate(batch):
        for t, turn in enumerate(trajectory):
            logs[b, t, : len(turn)] = torch.tensor(turn, dtype=torch.float64)
            generated[b, t, : len(turn)] = True
    return logs, generated


def slow_rejection(batch, level, mean, min_ratio, low=0.999, high=1.001):
    kept = []
    for trajectory in batch:
        for turn in trajectory:
            judged = [rho for each in trajectory for rho in each]
            judged = judged if level == "trajectory" else turn
            row = [False] * len(turn)
            if judged:
                if mean == "geometric":
                    weight = math.exp(math.fsum(judged) / len(judged))
                else:
                    weight = math.fsum(map(math.exp, judged)) / len(judged)
                row = [low <= weight <= high] * len(turn)
            if level == "token":
                row = [low <= math.exp(rho) <= high for rho in turn]
            if any(math.exp(rho) < min_ratio for rho in turn):
                row = [False] * len(turn)
            kept += row
    return kept


def rejected(batch, **options):
    logs, generated = log_table(batch)
    return reject(logs, torch.zeros_like(logs), generated, **options).tokens, generated


@given(
    BATCHES,
    st.sampled_from(["token", "turn", "trajectory"]),
    st.sampled_from(["geometric", "arithmetic"]),
)
def test_mismatch_rejection_is_what_a_loop_over_tokens_gives(batch, level, mean):
    assume(any(turn for trajectory in batch for turn in trajectory))
    found, generated = rejected(batch, level=level, mean=mean)
    assert not (found & ~generated).any()
    assert found[generated].tolist() == slow_rejection(batch, level, mean, 1e-4)


@given(BATCHES, st.floats(1e-6, 1.0), st.floats(1e-6, 1.0), st.floats(1.0, 3.0))
def test_a_stricter_veto_or_bound_never_keeps_more(batch, min_ratio, other, high):
    assume(any(turn for trajectory in batch for turn in trajectory))
    for level in ("token", "turn", "trajectory"):
        options = {"level": level, "low": 1e-3, "high": high}
        loose, _ = rejected(batch, min_ratio=min(min_ratio, other), **options)
        strict, _ = rejected(batch, min_ratio=max(min_ratio, other), **options)
        wide, _ = rejected(
            batch, min_ratio=max(min_ratio, other), level=level, low=1e-4, high=2 * high
        )
        assert not (strict & ~loose).any()
        assert not (strict & ~wide).any()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9), st.floats(0.01, 0.5), st.integers(0, 99))
def test_more_coverage_never_drops_what_was_kept(shares, softness, seed):
    shares.sort()
    coverage = masked([shares])
    draw = torch.full((1, len(shares)), uniform(seed, "p0.0", 0, 0), dtype=torch.float64)
    chosen = torch.ones(1, len(shares), dtype=torch.bool)
    for mode in ("soft", "hard", "off"):
        kept = keep(coverage, chosen, draw, mode=mode, softness=softness)[0].tolist()
        assert kept == sorted(kept)


@given(st.integers(0, 2**40), st.text(max_size=9), st.integers(0, 99), st.integers(0, 99))
def test_a_uniform_number_depends_on_its_name_and_lies_in_the_unit_interval(
    seed, group, rollout, turn
):
    value = uniform(seed, group, rollout, turn)
    assert 0.0 <= value < 1.0
    assert value == uniform(seed, group, rollout, turn)
    assert value != uniform(seed, group, rollout, turn + 1)


@given(TABLES)
def test_regressions_are_those_that_a_loop_over_turns_finds(table):
    wanted = [
        [
            reward is None or reward > 0 or not any(past and past > 0 for past in row[:t])
            for t, reward in enumerate(row)
        ]
        for row in table
    ]
    assert no_regress(masked(table)).tolist() == wanted


@given(MEMBERS, st.integers(1, 3))
def test_prompts_without_variance_are_those_that_a_loop_finds(members, least):
    last, prompts = table_of(members)
    wanted = []
    for _, group in members:
        known = [v for v, g in members if g == group and v is not None]
        flat = len(known) > 1 and torch.tensor(known).double().std().item() < 1e-3
        wanted.append(not flat and len(known) >= least)
    assert spread_prompts(last, prompts, least_judged=least).tolist() == wanted


@given(BATCHES)
def test_log_probabilities_in_float32_are_averaged_in_float64(batch):
    assume(any(turn for trajectory in batch for turn in trajectory))
    logs, generated = log_table(batch)
    sampler = torch.full_like(logs, -3.0)
    short = (logs + sampler).to(torch.float32)
    options = {"level": "trajectory", "low": 0.9, "high": 1.1}
    found = reject(short, sampler.to(torch.float32), generated, **options).tokens
    exact = [
        [(short[b, t, : len(turn)].double() + 3.0).tolist() for t, turn in enumerate(trajectory)]
        for b, trajectory in enumerate(batch)
    ]
    wanted = slow_rejection(exact, "trajectory", "geometric", 1e-4, 0.9, 1.1)
    assert found[generated].tolist() == wanted
