"""Presets decide every disagreement, and the estimator follows them."""

import math

import pydantic
import pytest
import torch

from tilewright.errors import ConfigError, RecordError
from tilewright.loop.strategies.sequential import CONTEXTS
from tilewright.rl.estimator import TurnVerdicts, estimate_rows, estimate_turns
from tilewright.rl.masked_tensors import listed, masked
from tilewright.rl.paper_vs_code import DISAGREEMENTS, ruling, settings_of, stance
from tilewright.rl.preset_text import explain
from tilewright.rl.presets import PAPER, PRESETS, RELEASED_CODE, TILEWRIGHT, preset
from tilewright.scoring.rewards import REWARDS


def test_presets_are_found_by_name_and_frozen():
    assert [preset(name).name for name in PRESETS] == list(PRESETS)
    with pytest.raises(ConfigError, match="there are paper, released_code, tilewright"):
        preset("grpo")
    with pytest.raises(pydantic.ValidationError):
        PAPER.reward.correct = 2.0
    assert set(PRESETS) <= set(REWARDS)
    assert {each.evaluation.memory for each in PRESETS.values()} <= set(CONTEXTS)


def test_all_disagreements_are_decided_by_each_preset():
    assert [item.number for item in DISAGREEMENTS] == list(range(1, 17))
    for item in DISAGREEMENTS:
        assert item.settings or item.fixed, item
        assert item.settings or item.ours, item
        if item.fixed is None:
            assert settings_of(PAPER, item) != settings_of(RELEASED_CODE, item), item
            assert stance(PAPER, item) == "as in the paper"
            assert stance(RELEASED_CODE, item) == "as in the code"
        for each in PRESETS.values():
            assert f"  {ruling(each, item)}\n" in explain(each)


def with_section(base, section, **values):
    return base.model_copy(update={section: getattr(base, section).model_copy(update=values)})


def test_the_stance_follows_the_settings():
    item = DISAGREEMENTS[4]
    assert stance(TILEWRIGHT, item) == "as in the code"
    assert stance(with_section(PAPER, "mismatch", level="off"), item) == "its own"


def test_the_values_of_the_table():
    assert (PAPER.reward.correct, RELEASED_CODE.reward.correct) == (1.0, 0.5)
    assert (PAPER.mismatch.level, RELEASED_CODE.mismatch.level) == ("trajectory",) * 2
    assert (PAPER.advantage.grpo_singleton, RELEASED_CODE.advantage.grpo_singleton) == (
        "zero",
        "return",
    )
    assert (PAPER.sft.learning_rate, PAPER.sft.batch) == (1e-6, 256)
    assert (RELEASED_CODE.sft.learning_rate, RELEASED_CODE.sft.batch) == (2e-5, 64)
    assert (PAPER.optimizer.steps, RELEASED_CODE.optimizer.steps) == (300, 230)
    for each in PRESETS.values():
        assert each.filters.regress == each.filters.zero_variance == (each is RELEASED_CODE)
        sampling = each.sampling
        assert (sampling.temperature, sampling.top_k, sampling.top_p) == (1.0, 0, 1.0)
        loss = each.loss
        assert (loss.clip_low, loss.clip_high, loss.dual_clip) == (0.2, 0.28, 3.0)
        assert (loss.aggregation, loss.scale) == ("seq-mean-token-sum", 1000.0)


@pytest.mark.reads_settings
@pytest.mark.parametrize("name", sorted(PRESETS))
def test_an_explanation_names_formulas_and_is_plain(name):
    text = explain(PRESETS[name])
    assert text.isascii()
    assert text.startswith(f"preset {name}\n")
    for equation in ("eq. 1", "eq. 2", "eq. 5", "eq. 6", "eq. 9"):
        assert equation in text


@pytest.mark.parametrize(
    ("section", "values", "words"),
    [
        ("mismatch", {"level": "off"}, "MRS\n  off\n"),
        ("mismatch", {"level": "token"}, "a token is kept iff 0.999 <= rho <= 1.001"),
        ("mismatch", {"mean": "arithmetic"}, "w = mean rho"),
        ("mismatch", {"over": "learnable"}, "its turns with a return that no filter drops"),
        ("profiling", {"mode": "off"}, "PRS\n  off\n"),
        ("profiling", {"mode": "hard"}, "p = 1 if PR >= 0.3 else 0"),
        ("advantage", {"estimator": "grpo"}, "mean of all G_j of the same prompt and turn)   (eq."),
        ("advantage", {"estimator": "grpo", "divide_by_std": True}, "/ (std + 1e-06), ddof = 1"),
        ("advantage", {"estimator": "rloo"}, "G that of the trajectory"),
        ("advantage", {"estimator": "reinforce"}, "A_i = G_i\n"),
        ("optimizer", {"schedule": "cosine"}, "rate 1e-06 falling as a cosine to 0"),
        ("optimizer", {"warmup_steps": 9}, "rate rising over 9 steps to 1e-06, then constant"),
        ("loss", {"denominator": "all"}, "the mean over all that was generated"),
    ],
)
def test_an_explanation_follows_the_settings(section, values, words):
    assert words in explain(with_section(PAPER, section, **values))


def batch(rewards, coverage=None, prompts=None, eligible=None):
    table = masked(rewards)
    return TurnVerdicts(
        prompts=torch.zeros(len(rewards), dtype=torch.int64) if prompts is None else prompts,
        present=torch.ones_like(table.known),
        rewards=table,
        eligible=table.values > 0.0 if eligible is None else eligible,
        coverage=masked(coverage or [[1.0] * len(row) for row in rewards]),
        uniforms=torch.full(table.known.shape, 0.5, dtype=torch.float64),
    )


def small(base):
    """Return a preset for two rollouts of two turns of one prompt."""
    return with_section(base, "sampling", prompts=1, rollouts=2, turns=2)


def rows(turns, chosen, shift=0.0):
    """Return what is learned from, with two tokens a turn and one shifted log-probability."""
    sampler = torch.full((*turns.present.shape, 2), -1.0, dtype=torch.float64)
    before = sampler.clone()
    before[0, 0, 0] += shift
    generated = turns.present[..., None].expand_as(before)
    return estimate_rows(estimate_turns(turns, chosen), before, sampler, generated, chosen)


@pytest.mark.reads_settings
def test_the_estimator_of_the_paper():
    found = rows(batch([[2.0, 3.0], [0.0, 1.0]]), small(PAPER))
    assert found.advantages.tolist() == [[4.0, 2.0], [-4.0, -2.0]]
    assert found.tokens.all()
    assert found.weights.tolist() == [[1 / 4000] * 2] * 2


def test_rejected_rows_stay_in_the_baseline_and_leave_the_denominator():
    turns = batch([[2.0, 3.0], [0.0, 1.0]], coverage=[[1.0, 0.1], [1.0, 1.0]])
    found = rows(turns, small(PAPER), shift=1.0)
    assert found.advantages.tolist() == [[4.0, 2.0], [-4.0, -2.0]]
    # Of the first trajectory one turn goes by its ratio, the other by its coverage.
    assert found.tokens.any(-1).tolist() == [[False, False], [True, True]]
    assert found.weights.tolist() == [[0.0, 0.0], [1 / 2000] * 2]
    honest = batch([[2.0, 3.0], [0.0, 1.0]])
    # A ratio drops its trajectory in every preset; that of a turn alone is a setting.
    for each in (PAPER, TILEWRIGHT):
        dropped = rows(honest, small(each), shift=1.0).tokens.any(-1)
        assert dropped.tolist() == [[False, False], [True, True]]
    by_turn = with_section(small(PAPER), "mismatch", level="turn")
    dropped = rows(honest, by_turn, shift=1.0).tokens.any(-1)
    assert dropped.tolist() == [[False, True], [True, True]]


def test_the_released_code_leaves_relapses_out_of_the_mean_of_a_trajectory():
    # The second turn of the first trajectory is a relapse, and its ratio is out of bounds.
    turns = batch([[2.0, 0.0], [0.0, 1.0]])
    sampler = torch.full((2, 2, 2), -1.0, dtype=torch.float64)
    before = sampler.clone()
    before[0, 1, 0] += 1.0
    generated = torch.ones_like(before, dtype=torch.bool)
    kept = {}
    for over in ("learnable", "generated"):
        chosen = with_section(small(RELEASED_CODE), "mismatch", over=over)
        estimate = estimate_turns(turns, chosen)
        assert estimate.filtered.tolist() == [[False, True], [False, False]]
        kept[over] = estimate_rows(estimate, before, sampler, generated, chosen).tokens.any(-1)
    assert RELEASED_CODE.mismatch.over == "learnable"
    assert kept["learnable"].tolist() == [[True, False], [True, True]]
    assert kept["generated"].tolist() == [[False, False], [True, True]]


def test_the_tilewright_preset_divides_by_planned_tokens_and_skips_groups_of_one():
    found = rows(batch([[2.0, 3.0], [None, 1.0]]), small(TILEWRIGHT))
    assert found.tokens.any(-1).tolist() == [[False, True], [False, True]]
    assert found.weights.tolist() == [[0.0, 1 / 4000]] * 2
    paper = estimate_turns(batch([[2.0, 3.0], [None, 1.0]]), small(PAPER))
    assert listed(paper.advantages) == [[5.0, 2.0], [None, -2.0]]


def test_filters_of_the_released_code_remove_rows_from_loss_and_baseline():
    rewards = [[1.0, 0.0], [1.0, 2.0], [0.0, 0.0], [0.0, 3.0]]
    found = estimate_turns(batch(rewards), with_section(RELEASED_CODE, "sampling", rollouts=4))
    assert found.filtered.tolist() == [[False, True], [False] * 2, [False] * 2, [False] * 2]
    assert listed(found.returns) == [[1.0, None], [3.0, 2.0], [0.0, 0.0], [3.0, 3.0]]
    assert listed(found.advantages)[1] == pytest.approx([3.0 - 4 / 3, 0.5])
    equal = estimate_turns(
        batch([[1.0, 2.0], [0.5, 2.0]]), with_section(RELEASED_CODE, "sampling", rollouts=2)
    )
    assert equal.filtered.all()
    assert not equal.advantages.known.any()
    lost = estimate_turns(batch([[None, 2.0], [0.5, 2.0]]), small(PAPER))
    assert not lost.filtered.any()


def test_an_unjudged_turn_excludes_the_turns_that_the_preset_names():
    turns = batch([[1.0, None, 2.0], [1.0, 1.0, 1.0]])
    assert listed(estimate_turns(turns, PAPER).returns)[0] == [None, None, 2.0]
    released = with_section(RELEASED_CODE, "filters", zero_variance=False)
    assert listed(estimate_turns(turns, released).returns)[0] == [None, None, None]


@pytest.mark.reads_settings
@pytest.mark.parametrize(
    ("estimator", "wanted"),
    [
        ("trloo", [[4.0, 2.0], [-4.0, -2.0]]),
        ("grpo", [[2.0, 1.0], [-2.0, -1.0]]),
        ("rloo", [[4.0, 4.0], [-4.0, -4.0]]),
        ("reinforce", [[5.0, 3.0], [1.0, 1.0]]),
    ],
)
def test_every_estimator_gives_its_known_advantages(estimator, wanted):
    chosen = with_section(PAPER, "advantage", estimator=estimator)
    found = estimate_turns(batch([[2.0, 3.0], [0.0, 1.0]]), chosen)
    assert listed(found.advantages) == wanted


def test_rloo_leaves_out_trajectories_with_an_unjudged_turn():
    chosen = with_section(PAPER, "advantage", estimator="rloo")
    found = estimate_turns(batch([[2.0, 3.0], [0.0, 1.0], [None, 9.0]]), chosen)
    assert listed(found.advantages) == [[4.0, 4.0], [-4.0, -4.0], [None, None]]


def test_a_token_mean_divides_by_planned_tokens():
    chosen = with_section(small(TILEWRIGHT), "loss", aggregation="token-mean", scale=1.0)
    chosen = with_section(chosen, "sampling", reply_tokens=10)
    found = rows(batch([[2.0, 3.0], [0.0, 1.0]]), chosen)
    assert found.weights.tolist() == [[1 / 40] * 2] * 2


def test_a_batch_without_remaining_rows_raises():
    turns = batch([[2.0, 3.0], [0.0, 1.0]], coverage=[[0.0, 0.0], [0.0, 0.0]])
    turns = TurnVerdicts(
        turns.prompts,
        turns.present,
        turns.rewards,
        torch.ones_like(turns.eligible),
        turns.coverage,
        turns.uniforms,
    )
    with pytest.raises(RecordError, match="nothing to learn"):
        rows(turns, small(PAPER))
    with pytest.raises(RecordError, match="prompts"):
        estimate_turns(
            batch([[1.0], [1.0]], prompts=torch.zeros(3, dtype=torch.int64)), small(PAPER)
        )


def test_a_shape_that_does_not_fit_is_refused():
    chosen = small(PAPER)
    found = estimate_turns(batch([[2.0, 3.0], [0.0, 1.0]]), chosen)
    logs = torch.full((2, 1, 2), math.log(0.5))
    with pytest.raises(RecordError, match="generated"):
        estimate_rows(found, logs, logs, torch.ones(2, 1, 2, dtype=torch.bool), chosen)
