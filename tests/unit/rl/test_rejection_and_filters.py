"""Mismatch rejection, coverage sampling and the filters, against golden vectors."""

import math

import pytest
import torch

from tilewright.errors import ConfigError, RecordError
from tilewright.records.events import EvalSummary
from tilewright.rl.coverage_sampling import keep, keep_chance, uniform, uniforms
from tilewright.rl.filters import last_rewards, no_regress, spread_prompts
from tilewright.rl.masked_tensors import Masked, masked
from tilewright.rl.mismatch_sampling import mean_log_ratios, ratios, reject, require_kept
from tilewright.rl.presets import PRESETS
from tilewright.rl.rewards.turn_reward import JudgedTurn
from tilewright.rl.training_rows import rewards_of
from tilewright.scoring.rewards import REWARDS

HIGH = math.log(1.001)


def trajectories(*batch):
    """Return log rho (B, T, L) and what was generated, from trajectories of turns of log ratios."""
    turns = max(len(trajectory) for trajectory in batch)
    longest = max(len(turn) for trajectory in batch for turn in trajectory)
    logs = torch.full((len(batch), turns, longest), math.nan, dtype=torch.float64)
    generated = torch.zeros(logs.shape, dtype=torch.bool)
    for b, trajectory in enumerate(batch):
        for t, turn in enumerate(trajectory):
            logs[b, t, : len(turn)] = torch.tensor(turn, dtype=torch.float64)
            generated[b, t, : len(turn)] = True
    return logs, generated


def kept(batch, **options):
    logs, generated = trajectories(*batch)
    found = reject(logs, torch.zeros_like(logs), generated, **options)
    assert torch.equal(found.left, found.tokens.sum(-1))
    assert torch.equal(found.written, generated.sum(-1))
    return found.tokens.any(-1).tolist()


@pytest.mark.parametrize(
    ("turn", "log_weight", "stays"),
    [
        ([0.001] * 7, 0.001, False),
        ([-0.5] + [0.0] * 499, math.log(0.9990005), True),
        ([-0.5] + [0.0] * 400, math.log(0.99875), False),
        ([math.log(1e-5)] + [0.0] * 9999, math.log(0.99885), False),
    ],
)
@pytest.mark.parametrize("level", ["turn", "trajectory"])
def test_golden_mismatch(turn, log_weight, stays, level):
    logs, generated = trajectories([turn])
    found = mean_log_ratios(ratios(logs, torch.zeros_like(logs), generated), level=level)
    assert found.values.item() == pytest.approx(log_weight, abs=5e-6)
    assert kept([[turn]], level=level, min_ratio=None) == [[stays]]


def test_the_bounds_are_inclusive():
    beyond = math.nextafter(HIGH, 1.0)
    for level in ("token", "turn", "trajectory"):
        assert kept([[[HIGH]], [[beyond]]], level=level) == [[True], [False]]
        low = math.log(0.999)
        assert kept([[[low]], [[math.nextafter(low, -1.0)]]], level=level) == [[True], [False]]


def test_the_trajectory_is_averaged_over_tokens_of_all_turns_and_not_over_turns():
    # One token of 0.01 among 20 of all turns is within; of the turn's own two it is not.
    trajectory = [[0.01, 0.0], [0.0] * 9, [0.0] * 9]
    assert kept([trajectory], level="trajectory") == [[True, True, True]]
    assert kept([trajectory], level="turn") == [[False, True, True]]
    assert kept([trajectory], level="token") == [[True, True, True]]


def test_the_arithmetic_mean_is_of_ratios():
    logs, generated = trajectories([[math.log(1.5), math.log(0.5)]], [[0.0, 0.0]])
    flat = torch.zeros_like(logs)
    found = mean_log_ratios(ratios(logs, flat, generated, mean="arithmetic"), level="turn")
    assert found.values.squeeze(-1).tolist() == pytest.approx([0.0, 0.0], abs=1e-15)
    pair = [[[math.log(1.5), math.log(0.5)]], [[0.0, 0.0]]]
    assert kept(pair, mean="arithmetic", level="trajectory") == [[True], [True]]
    assert kept(pair, mean="geometric", level="trajectory") == [[False], [True]]


def test_the_veto_uses_low_ratios_of_its_own_turn_only():
    down, up = math.log(9e-5), 11.0
    wide = {"low": 1e-9, "high": 1e9, "level": "trajectory"}
    assert kept([[[down, 0.0], [0.0]], [[up, 0.0], [0.0]]], **wide) == [[False, True], [True, True]]
    assert kept([[[math.log(1e-4)]]], **wide) == [[True]]
    # A turn that is vetoed counts in the mean of the others all the same.
    assert kept([[[down], [0.0] * 99], [[0.0]]], level="trajectory") == [
        [False, False],
        [True, False],
    ]


def test_impossible_tokens_are_rejected_and_invalid_numbers_raise():
    assert kept([[[-math.inf, 0.0]], [[0.0]]]) == [[False], [True]]
    for mean in ("geometric", "arithmetic"):
        assert kept([[[-math.inf]], [[0.0]]], mean=mean, min_ratio=None) == [[False], [True]]
    for wrong in (math.nan, math.inf):
        logs, generated = trajectories([[wrong, 0.0]])
        with pytest.raises(RecordError, match="no number"):
            reject(logs, torch.zeros_like(logs), generated)


def test_an_empty_batch_raises():
    logs, generated = trajectories([[1.0]])
    flat = torch.zeros_like(logs)
    with pytest.raises(ConfigError, match="kept none of 1 turns"):
        require_kept(reject(logs, flat, generated))
    with pytest.raises(RecordError, match="no token"):
        reject(logs, flat, torch.zeros_like(generated))
    nothing = torch.zeros(1, 1, 0)
    with pytest.raises(RecordError, match="no token"):
        reject(nothing, nothing, nothing.bool())


def test_rejection_can_be_off_and_its_settings_are_checked():
    assert kept([[[5.0, -20.0]]], level="off") == [[True]]
    logs, generated = trajectories([[0.0]])
    for options in (
        {"low": 0.0},
        {"low": 1.1, "high": 1.0},
        {"min_ratio": 0.0},
        {"min_ratio": 2.0},
    ):
        with pytest.raises(ConfigError, match="bounds"):
            reject(logs, torch.zeros_like(logs), generated, **options)
    with pytest.raises(RecordError, match="dimensions"):
        reject(logs[0], logs[0], generated[0])
    with pytest.raises(RecordError, match="sampler"):
        reject(logs, logs[:, :, :0], generated)


def test_a_batch_larger_than_a_block_gives_the_same_result():
    draw = torch.Generator().manual_seed(1)
    before = torch.randn(40, 2, 3000, generator=draw) * 1e-2
    generated = torch.rand(40, 2, 3000, generator=draw) < 0.5
    found = mean_log_ratios(ratios(before, before * 0.5, generated), level="trajectory")
    logs = torch.where(generated, before.double() - (before * 0.5).double(), 0.0)
    wanted = logs.sum((-2, -1)) / generated.sum((-2, -1))
    assert torch.allclose(found.values[:, 0], wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("coverage", "wanted"), [(0.30, 0), (0.32, 0.2), (0.35, 0.5), (0.40, 1), (0.9, 1), (0.0, 0)]
)
def test_golden_chances_of_profiling(coverage, wanted):
    share = torch.tensor([coverage], dtype=torch.float64)
    assert keep_chance(share).item() == pytest.approx(wanted, abs=1e-12)
    assert keep_chance(share, mode="hard").item() == float(coverage >= 0.3)
    assert keep_chance(share, mode="off").item() == 1.0


def test_golden_uniform_number():
    assert uniform(0, "p3.0", 2, 1) == pytest.approx(0.37188172, abs=5e-9)
    assert uniforms(0, [("p3.0", 2), ("p4.0", 0)], 3)[0, 1].item() == uniform(0, "p3.0", 2, 1)
    assert uniforms(0, [], 3).shape == (0, 3)


def test_only_correct_turns_with_a_measured_coverage_are_dropped():
    coverage = masked([[0.35, 0.35, 0.35, None, 0.1]])
    eligible = torch.tensor([[True, True, False, True, False]])
    draws = torch.tensor([[0.49, 0.5, 0.99, 0.99, 0.99]], dtype=torch.float64)
    wanted = [[True, False, True, True, True]]
    assert keep(coverage, eligible, draws).tolist() == wanted
    assert keep(coverage, eligible, draws, mode="off").all()
    hard = keep(coverage, eligible, draws, mode="hard", cutoff=0.36)
    assert hard.tolist() == [[False, False, True, True, True]]
    with pytest.raises(ConfigError, match="softness"):
        keep(coverage, eligible, draws, softness=0.0)


@pytest.mark.parametrize(
    ("correct", "speedup", "coverage", "paper"),
    [(1, 1, 0, 2.0), (1, 2.08, 0.8615, 3.9415), (1, 5, 1, 5.0), (0, 0, 0, 0.0)],
)
def test_golden_rewards(correct, speedup, coverage, paper):
    verdict = "correct" if correct else "incorrect"
    item = EvalSummary(
        protocol="strict", verdict=verdict, speedup=speedup or None, coverage=coverage
    )
    for name, wanted in (("paper", paper), ("released_code", paper / 2)):
        found = rewards_of([[JudgedTurn(item)]], PRESETS[name].reward)
        assert found.values.item() == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("name", sorted(PRESETS))
@pytest.mark.parametrize(
    "judgement",
    [
        EvalSummary(protocol="strict", verdict="correct", speedup=2.0, low=1.5, coverage=0.25),
        EvalSummary(protocol="strict", verdict="correct", speedup=9.0, low=8.0),
        EvalSummary(protocol="strict", verdict="correct"),
        EvalSummary(protocol="strict", verdict="incorrect", coverage=0.5),
        EvalSummary(protocol="strict", verdict="rejected", speedup=9.0, low=8.0),
        EvalSummary(protocol="strict", verdict="unjudged"),
    ],
)
def test_the_reward_of_a_preset_is_the_rule_of_that_name(name, judgement):
    judged = judgement.verdict != "unjudged"
    found = rewards_of([[JudgedTurn(judgement) if judged else None]], PRESETS[name].reward)
    value = found.values.item() if found.known.item() else None
    assert value == pytest.approx(REWARDS[name](judgement))


def test_a_regressed_turn_is_dropped_and_unjudged_turns_are_no_regression():
    table = masked([[0.0, 1.0, 0.0, 2.0, -1.0], [None, 0.0, None, 1.0, None]])
    assert no_regress(table).tolist() == [[True, True, False, True, False], [True] * 5]


def test_prompts_without_variance_are_dropped():
    last = masked([[1.0, 1.0 + 1e-4, 0.0, 2.0, 5.0, None, None, 3.0]])
    table = Masked(last.values[0], last.known[0])
    prompts = torch.tensor([0, 0, 1, 1, 2, 2, 3, 4])
    found = spread_prompts(table, prompts)
    assert found.tolist() == [False, False, True, True, True, True, False, True]
    assert (
        spread_prompts(table, prompts, least_judged=2).tolist()
        == [False, False, True, True] + [False] * 4
    )
    assert found.dtype == torch.bool
    assert found.shape == prompts.shape
    with pytest.raises(ConfigError, match="least_std"):
        spread_prompts(table, prompts, least_std=-1.0)


def test_the_last_reward_is_of_the_last_present_turn():
    table = masked([[1.0, 2.0, None], [1.0, 2.0, None], [None, None, None]])
    present = torch.tensor([[True, True, False], [True, True, True], [False, False, False]])
    found = last_rewards(table, present)
    assert found.known.tolist() == [True, False, False]
    assert found.values[0].item() == 2.0
