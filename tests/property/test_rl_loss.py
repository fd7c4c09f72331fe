"""Properties of the loss and its weights, with NaN in every masked place."""

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tilewright.rl.loss import for_engine, policy_loss, row_weights, token_losses

AGGREGATIONS = st.sampled_from(["seq-mean-token-sum", "seq-mean-token-mean", "token-mean"])


@st.composite
def losses(draw, kinks=True):
    """Draw what the loss takes: rows of up to 5 tokens, NaN wherever nothing may be read."""
    rows, longest = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    gaps = [0.0, 0.3, -0.3, 1.5, -1.5, 0.1, -0.1] + [math.log(0.8), math.log(1.28)] * kinks
    gains = [-2.0, -0.5, 0.0, 1.0, 3.0]
    shape = (rows, longest)
    tokens = torch.tensor(draw(arrays(bool, shape)))
    moved = torch.tensor(draw(arrays(float, shape, elements=st.sampled_from(gaps))))
    before = torch.tensor(draw(arrays(float, shape, elements=st.floats(-5, 0))))
    gain = torch.tensor(draw(arrays(float, rows, elements=st.sampled_from(gains))))
    kept = tokens.any(-1)
    hidden = torch.where(tokens, before, math.nan)
    return (
        torch.where(tokens, before + moved, math.nan),
        hidden,
        tokens,
        torch.where(kept, gain, math.nan),
    )


def slow_loss(now, before, tokens, advantages, weights, dual=3.0):
    """Return the loss and its gradient, token by token; flat where a clip decides."""
    whole, slopes = 0.0, []
    for b, row in enumerate(tokens.tolist()):
        slopes.append([0.0] * len(row))
        for t, counted in enumerate(row):
            if not counted:
                continue
            gain, weight = advantages[b].item(), weights[b].item()
            ratio = math.exp(now[b, t].item() - before[b, t].item())
            free, held = -ratio * gain, -min(max(ratio, 0.8), 1.28) * gain
            loss, slope = (free, free) if free >= held else (held, 0.0)
            if gain < 0 and loss > -dual * gain:
                loss, slope = -dual * gain, 0.0
            whole += weight * loss
            slopes[-1][t] = weight * slope
    return whole, slopes


def weighted(tokens, aggregation="seq-mean-token-sum"):
    count = tokens.sum(-1)
    return row_weights(count, count, aggregation=aggregation, scale=10.0)


@given(losses(kinks=False), AGGREGATIONS)
def test_loss_and_gradient_are_those_of_a_loop_over_tokens(drawn, aggregation):
    now, before, tokens, gain = drawn
    assume(bool(tokens.any()))
    weights = weighted(tokens, aggregation)
    asked = now.clone().requires_grad_()
    loss = policy_loss(asked, before, tokens, gain, weights)
    loss.backward()
    whole, slopes = slow_loss(now, before, tokens, gain, weights)
    assert loss.item() == pytest.approx(whole, rel=1e-12, abs=1e-12)
    assert torch.allclose(asked.grad, torch.tensor(slopes).double(), rtol=1e-6, atol=1e-9)


@given(losses(kinks=False))
def test_the_gradient_agrees_with_finite_differences(drawn):
    now, before, tokens, gain = drawn
    assume(bool(tokens.any()))
    weights = weighted(tokens)
    asked = now.clone().requires_grad_()
    policy_loss(asked, before, tokens, gain, weights).backward()
    step = 1e-6
    for b, t in tokens.nonzero().tolist():
        moved = torch.zeros_like(now)
        moved[b, t] = step
        ahead = policy_loss(now + moved, before, tokens, gain, weights)
        behind = policy_loss(now - moved, before, tokens, gain, weights)
        slope = (ahead - behind).item() / (2 * step)
        assert asked.grad[b, t].item() == pytest.approx(slope, rel=1e-5, abs=1e-7)


@given(losses(), st.floats(0, 50))
def test_the_loss_is_homogeneous_in_the_advantage(drawn, factor):
    now, before, tokens, gain = drawn
    one = token_losses(now, before, tokens, gain)
    many = token_losses(now, before, tokens, gain * factor)
    assert torch.allclose(many, one * factor, rtol=1e-12, atol=1e-12)


@given(losses(), AGGREGATIONS, st.data())
def test_the_engine_normaliser_recovers_the_tilewright_loss(drawn, aggregation, data):
    now, before, tokens, gain = drawn
    assume(bool(tokens.any()))
    weights = weighted(tokens, aggregation)
    normaliser = torch.tensor(data.draw(arrays(float, len(gain), elements=st.floats(0.5, 5000))))
    scaled = for_engine(gain, weights, normaliser)
    theirs = (token_losses(now, before, tokens, scaled).sum(-1) / normaliser).sum()
    ours = policy_loss(now, before, tokens, gain, weights)
    assert theirs.item() == pytest.approx(ours.item(), rel=1e-9, abs=1e-12)


@given(losses(), AGGREGATIONS, st.integers(1, 3))
def test_losses_of_micro_batches_add_up(drawn, aggregation, size):
    now, before, tokens, gain = drawn
    assume(bool(tokens.any()))
    weights = weighted(tokens, aggregation)
    parts = [part.split(size) for part in (now, before, tokens, gain, weights)]
    pieces = sum(policy_loss(*piece).item() for piece in zip(*parts, strict=True))
    whole = policy_loss(now, before, tokens, gain, weights).item()
    assert pieces == pytest.approx(whole, rel=1e-12, abs=1e-12)


@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=8), AGGREGATIONS)
def test_weights_of_tokens_add_up_to_one_or_to_a_mean_length(rows, aggregation):
    assume(any(stays for _, stays in rows))
    generated = torch.tensor([count for count, _ in rows])
    kept = torch.tensor([count if stays else 0 for count, stays in rows])
    lengths = [count for count, stays in rows if stays]
    mean = sum(lengths) / len(lengths) if aggregation == "seq-mean-token-sum" else 1.0
    weights = row_weights(generated, kept, aggregation=aggregation, scale=1.0)
    assert (weights * kept).sum().item() == pytest.approx(mean)
    # Over all rows it is the share of that which is kept, so rejection shortens the step.
    over_all = row_weights(generated, kept, aggregation=aggregation, denominator="all", scale=1.0)
    counts, whole = (kept, generated) if aggregation == "token-mean" else (kept > 0, generated > 0)
    share = counts.sum() / whole.sum()
    assert torch.allclose(over_all, weights * share, rtol=1e-6)


@given(losses())
def test_log_probabilities_in_float32_give_the_loss_of_float64(drawn):
    now, before, tokens, gain = drawn
    assume(bool(tokens.any()))
    weights = weighted(tokens)
    short = policy_loss(now.float(), before.float(), tokens, gain.float(), weights.float())
    assert short.dtype == torch.float64
    wanted = policy_loss(now, before, tokens, gain, weights).item()
    assert short.item() == pytest.approx(wanted, rel=1e-5, abs=1e-6)
