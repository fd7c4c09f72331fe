"""The loss: golden denominators, clips at their edges, and normalisers of other engines."""

import math

import pytest
import torch

from tilewright.errors import ConfigError, RecordError
from tilewright.rl.loss import for_engine, kl_losses, policy_loss, row_weights, token_losses
from tilewright.rl.presets import LossSection

LENGTHS = torch.tensor([2, 3, 1])
ADVANTAGES = torch.tensor([1.0, -1.0, 2.0], dtype=torch.float64)
TOKENS = torch.arange(3) < LENGTHS[:, None]


def loss_of(ratio, advantage, **options):
    now = torch.tensor([[math.log(ratio)]], dtype=torch.float64)
    one = torch.ones(1, 1, dtype=torch.bool)
    gain = torch.tensor([advantage], dtype=torch.float64)
    return token_losses(now, torch.zeros_like(now), one, gain, **options).item()


@pytest.mark.parametrize(
    ("denominator", "wanted"), [("kept", -0.002), ("all", -0.004 / 3), ("planned", -0.004 / 8)]
)
def test_golden_denominators(denominator, wanted):
    kept = torch.tensor([2, 0, 1])
    planned = 8 if denominator == "planned" else None
    weights = row_weights(LENGTHS, kept, denominator=denominator, planned=planned)
    tokens = TOKENS & (kept > 0)[:, None]
    now = torch.full((3, 3), -1.5)
    assert policy_loss(now, now, tokens, ADVANTAGES, weights).item() == pytest.approx(wanted)


def test_row_weights_of_each_aggregation():
    kept = torch.tensor([2, 0, 1])
    one = {"scale": 1.0}
    for aggregation, denominator, wanted in (
        ("seq-mean-token-sum", "kept", [1 / 2, 0, 1 / 2]),
        ("seq-mean-token-sum", "all", [1 / 3, 0, 1 / 3]),
        ("seq-mean-token-mean", "kept", [1 / 4, 0, 1 / 2]),
        ("seq-mean-token-mean", "all", [1 / 6, 0, 1 / 3]),
        ("token-mean", "kept", [1 / 3, 0, 1 / 3]),
        ("token-mean", "all", [1 / 6, 0, 1 / 6]),
    ):
        weights = row_weights(
            LENGTHS, kept, aggregation=aggregation, denominator=denominator, **one
        )
        assert weights.tolist() == pytest.approx(wanted), (aggregation, denominator)
    planned = {"denominator": "planned", "planned": 10, **one}
    for aggregation, wanted in (
        ("seq-mean-token-sum", [1 / 10, 0, 1 / 10]),
        ("seq-mean-token-mean", [1 / 20, 0, 1 / 10]),
        ("token-mean", [1 / 10, 0, 1 / 10]),
    ):
        weights = row_weights(LENGTHS, kept, aggregation=aggregation, **planned)
        assert weights.tolist() == pytest.approx(wanted), aggregation


def test_padding_rows_count_nowhere():
    padded = torch.tensor([2, 3, 1, 0, 0])
    for aggregation in ("seq-mean-token-sum", "seq-mean-token-mean", "token-mean"):
        for denominator in ("kept", "all"):
            options = {"aggregation": aggregation, "denominator": denominator}
            weights = row_weights(padded, padded, **options)
            assert weights[:3].tolist() == row_weights(LENGTHS, LENGTHS, **options).tolist()
            assert weights[3:].tolist() == [0.0, 0.0]


def test_row_weights_refuse_invalid_arguments():
    for options in (
        {"scale": 0.0},
        {"denominator": "planned"},
        {"planned": 3},
        {"denominator": "planned", "planned": 0},
    ):
        with pytest.raises(ConfigError):
            row_weights(LENGTHS, LENGTHS, **options)
    with pytest.raises(RecordError, match="more tokens"):
        row_weights(LENGTHS, LENGTHS + 1)
    with pytest.raises(RecordError, match="nothing to learn"):
        row_weights(LENGTHS, torch.zeros_like(LENGTHS))
    with pytest.raises(RecordError, match="kept"):
        row_weights(LENGTHS, LENGTHS[:2])


@pytest.mark.parametrize(
    ("ratio", "advantage", "wanted"),
    [
        (1.0, 2.0, -2.0),
        (1.2, 2.0, -2.4),
        (1.5, 2.0, -2.56),
        (0.5, 2.0, -1.0),
        (0.5, -2.0, 1.6),
        (1.5, -2.0, 3.0),
        (4.0, -2.0, 6.0),
        (math.exp(60.0), -2.0, 6.0),
    ],
)
def test_clips_and_dual_clip(ratio, advantage, wanted):
    assert loss_of(ratio, advantage) == pytest.approx(wanted)


def test_without_dual_clip_the_loss_grows_with_the_ratio():
    assert loss_of(4.0, -2.0, dual_clip=None) == pytest.approx(8.0)


def test_dual_clip_equals_the_ratio_limit_of_other_packages():
    """TRL's delta caps the ratio first: the same, where it lies above the upper clip."""
    for ratio in (0.1, 0.8, 1.0, 1.28, 2.0, 3.0, 7.0):
        for advantage in (-2.0, 0.0, 1.5):
            capped = min(ratio, 3.0)
            clipped = min(max(ratio, 0.8), 1.28)
            wanted = -min(capped * advantage, clipped * advantage)
            assert loss_of(ratio, advantage) == pytest.approx(wanted)


def test_gradients_survive_overflow_and_do_not_leak_through_masks():
    now = torch.tensor([[300.0, math.nan, 0.5]], dtype=torch.float64, requires_grad=True)
    before = torch.tensor([[0.0, math.nan, 0.5]], dtype=torch.float64)
    tokens = torch.tensor([[True, False, True]])
    gain = torch.tensor([-1.0], dtype=torch.float64)
    loss = policy_loss(now, before, tokens, gain, torch.ones(1))
    loss.backward()
    assert loss.item() == pytest.approx(4.0)
    assert now.grad.tolist() == [[0.0, 0.0, 1.0]]


def test_an_engines_normaliser_cancels():
    weights = row_weights(LENGTHS, torch.tensor([2, 0, 1]))
    now = torch.linspace(-1.0, 0.5, 9, dtype=torch.float64).reshape(3, 3)
    before = torch.zeros_like(now)
    kept = TOKENS & (weights > 0)[:, None]
    wanted = policy_loss(now, before, kept, ADVANTAGES, weights)
    rows = torch.tensor([math.nan if weight == 0 else 1.0 for weight in weights.tolist()])
    engines = {
        "token-mean": LENGTHS.sum().double(),
        "rows x longest": torch.tensor(3.0 * 3),
        "row mean": 3.0 * LENGTHS,
    }
    for normaliser in engines.values():
        gain = for_engine(ADVANTAGES * rows, weights, normaliser)
        each = token_losses(now, before, TOKENS, gain).sum(-1) / normaliser
        assert each.sum().item() == pytest.approx(wanted.item(), rel=1e-12)


def test_the_loss_refuses_invalid_arguments():
    now = torch.zeros(3, 3)
    for options in ({"clip_low": -0.1}, {"clip_low": 1.5}, {"clip_high": -1.0}, {"dual_clip": 1.0}):
        with pytest.raises(ConfigError, match="clip"):
            token_losses(now, now, TOKENS, ADVANTAGES, **options)
    with pytest.raises(RecordError, match="before"):
        token_losses(now, now[:2], TOKENS, ADVANTAGES)
    with pytest.raises(RecordError, match="advantages"):
        token_losses(now, now, TOKENS, now)
    with pytest.raises(RecordError, match="weights"):
        policy_loss(now, now, TOKENS, ADVANTAGES, torch.ones(2))


@pytest.mark.parametrize(("gap", "wanted"), [(0.1, 0.0051709), (-0.2, 0.0187308), (0.0, 0.0)])
def test_golden_kl(gap, wanted):
    """k3 = exp(d) - d - 1 with d = log p of the reference - log p (Schulman 2020)."""
    now, tokens = torch.tensor([-1.0], dtype=torch.float64), torch.tensor([True])
    made = float(kl_losses(now, now + gap, tokens))
    assert made == pytest.approx(math.exp(gap) - gap - 1, abs=1e-12)
    assert made == pytest.approx(wanted, abs=1e-7)


def test_the_gradient_of_the_kl_term():
    now = torch.tensor([-1.0, -2.0, -0.3, -4.0], dtype=torch.float64, requires_grad=True)
    reference = torch.tensor([-1.1, -1.5, -0.3, math.nan], dtype=torch.float64)
    tokens = torch.tensor([True, True, True, False])
    (grad,) = torch.autograd.grad(kl_losses(now, reference, tokens).sum(), now)
    wanted = [1 - math.exp(r - n) for r, n in ((-1.1, -1.0), (-1.5, -2.0), (-0.3, -0.3))]
    assert grad.tolist() == pytest.approx([*wanted, 0.0], abs=1e-12)
    known = (reference[:3], tokens[:3])
    free = now.detach()[:3].requires_grad_()
    assert torch.autograd.gradcheck(lambda values: kl_losses(values, *known), (free,))


def test_a_kl_term_needs_rows_of_equal_weight():
    with pytest.raises(ValueError, match="needs the aggregation"):
        LossSection(kl=0.1, aggregation="seq-mean-token-mean")


def test_reinforce_on_successes_is_supervised_learning_with_the_weights_of_all_samples():
    """Stage 2 of CUDA-L1: rewards of 1 and 0, no baseline; failures have no gradient at all."""
    logits = torch.randn(4, 3, 5, dtype=torch.float64, requires_grad=True)
    chosen, lengths = torch.randint(5, (4, 3)), torch.tensor([3, 2, 1, 3])
    tokens, success = torch.arange(3) < lengths[:, None], torch.tensor([1.0, 0.0, 1.0, 0.0])

    def log_probs():
        return logits.log_softmax(-1).gather(-1, chosen[..., None])[..., 0]

    options = {"aggregation": "seq-mean-token-mean", "denominator": "all", "scale": 1.0}
    weights = row_weights(lengths, lengths, **options)
    now = log_probs()
    policy_loss(now, now.detach(), tokens, success.double(), weights).backward()
    learned, logits.grad = logits.grad, None
    supervised = [-(log_probs()[row] * tokens[row]).sum() / lengths[row] for row in (0, 2)]
    (sum(supervised) / 4).backward()
    assert torch.allclose(learned, logits.grad, atol=1e-12, rtol=0)
    assert bool((learned[[1, 3]] == 0).all())
