"""Generalised advantages against the golden vector, and against a plain loop on random batches."""

import random

import pytest
import torch

from tilewright.errors import ConfigError, RecordError
from tilewright.rl.generalised_advantages import generalised_advantages

GAMMA, LAMBDA = 0.99, 0.95


def test_golden_advantages_and_returns():
    """Schulman et al. 2016, equation 16: delta_t = r_t + gamma V_{t+1} - V_t, 0 after the end."""
    rewards, values = [0.55, -0.5, 1.45], [0.2, 0.1, 0.3]
    last = rewards[2] - values[2]
    middle = rewards[1] + GAMMA * values[2] - values[1] + GAMMA * LAMBDA * last
    first = rewards[0] + GAMMA * values[1] - values[0] + GAMMA * LAMBDA * middle
    present = torch.ones(1, 3, dtype=torch.bool)
    advantages, returned = generalised_advantages(
        torch.tensor([rewards]), torch.tensor([values]), present, gamma=GAMMA, gae_lambda=LAMBDA
    )
    assert advantages[0].tolist() == pytest.approx([first, middle, last], abs=1e-6)
    assert advantages[0].tolist() == pytest.approx([1.18125, 0.778575, 1.15], abs=1e-4)
    assert returned[0].tolist() == pytest.approx([1.38125, 0.878575, 1.45], abs=1e-4)
    assert advantages.dtype == returned.dtype == torch.float64


def plain(rewards, values, gamma, decay):
    """Return sum over k of (gamma lambda)^k delta_{t+k} for each t, term by term."""
    ends = [*values[1:], 0.0]
    deltas = [
        reward + gamma * after - now
        for reward, after, now in zip(rewards, ends, values, strict=True)
    ]
    return [
        sum((gamma * decay) ** k * delta for k, delta in enumerate(deltas[start:]))
        for start in range(len(deltas))
    ]


@pytest.mark.parametrize("seed", range(200))
def test_random_batches_equal_a_plain_loop(seed):
    draw = random.Random(seed)
    gamma, decay = draw.random(), draw.random()
    lengths = [draw.randint(1, 9) for _ in range(draw.randint(1, 6))]
    most = max(lengths)
    rewards = [[draw.gauss(0, 2) for _ in range(n)] for n in lengths]
    values = [[draw.gauss(0, 2) for _ in range(n)] for n in lengths]

    def table(rows):
        # No function may read a place after the end of an episode.
        padded = [row + [float("nan")] * (most - len(row)) for row in rows]
        return torch.tensor(padded, dtype=torch.float64)

    present = torch.tensor([[place < n for place in range(most)] for n in lengths])
    made, returned = generalised_advantages(
        table(rewards), table(values), present, gamma=gamma, gae_lambda=decay
    )
    for row, (earned, valued) in enumerate(zip(rewards, values, strict=True)):
        wanted = plain(earned, valued, gamma, decay)
        count = len(wanted)
        assert made[row, :count].tolist() == pytest.approx(wanted, abs=1e-9)
        sums = [a + v for a, v in zip(wanted, valued, strict=True)]
        assert returned[row, :count].tolist() == pytest.approx(sums, abs=1e-9)
        assert made[row, count:].tolist() == [0.0] * (most - count)


def test_an_episode_has_no_gap_and_settings_lie_between_0_and_1():
    one, gap = torch.ones(1, 2), torch.tensor([[False, True]])
    bad = torch.full((1, 2), float("nan"))
    with pytest.raises(RecordError, match="after an absent one"):
        generalised_advantages(one, one, gap, gamma=0.9, gae_lambda=0.9)
    present = torch.ones(1, 2, dtype=torch.bool)
    with pytest.raises(ConfigError, match="gae_lambda is 2"):
        generalised_advantages(one, one, present, gamma=0.9, gae_lambda=2.0)
    with pytest.raises(RecordError, match="not finite"):
        generalised_advantages(bad, one, present, gamma=0.9, gae_lambda=0.9)


def test_no_gradient_reaches_the_values():
    values = torch.ones(1, 2, requires_grad=True)
    present = torch.ones(1, 2, dtype=torch.bool)
    made, returned = generalised_advantages(
        torch.ones(1, 2), values, present, gamma=0.9, gae_lambda=0.9
    )
    assert not made.requires_grad
    assert not returned.requires_grad
