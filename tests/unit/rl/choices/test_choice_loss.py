"""The loss of choices against the equation, term by term."""

import math

import pytest
import torch

from tilewright.rl.choices.choice_loss import ChoiceBatch, choice_loss
from tilewright.rl.presets import PAPER

PROBABILITIES = [[0.5, 0.3, 0.2], [0.1, 0.9, 0.0]]
BEFORE, TAKEN, REFERENCE = [0.25, 0.9], [0, 1], [0.4, 0.8]
ADVANTAGES, RETURNS, VALUES = [1.5, -0.5], [2.0, -1.0], [1.0, 0.5]


def settings(**changes):
    loss = PAPER.loss.model_copy(update={"clip_high": 0.2, "dual_clip": None, "kl": 0.01})
    choices = PAPER.choices.model_copy(update=changes)
    return PAPER.model_copy(update={"loss": loss, "choices": choices})


def made(preset, reference=True):
    log_pi = torch.tensor(PROBABILITIES, dtype=torch.float64).log()
    tensor = lambda values: torch.tensor(values, dtype=torch.float64)  # noqa: E731
    batch = ChoiceBatch(
        torch.tensor(TAKEN),
        tensor(BEFORE).log(),
        tensor(ADVANTAGES),
        tensor(RETURNS),
        tensor(REFERENCE).log() if reference else None,
    )
    return choice_loss(log_pi, tensor(VALUES), batch, preset)


@pytest.mark.reads_settings
def test_each_term_is_that_of_the_equation():
    """Schulman et al. 2017, equation 9, with k3 of Schulman 2020."""
    found = made(settings(entropy=0.02, value=0.5))
    pairs = zip(PROBABILITIES, TAKEN, BEFORE, ADVANTAGES, strict=True)
    surrogate = [-min(row[t] / b * a, min(max(row[t] / b, 0.8), 1.2) * a) for row, t, b, a in pairs]
    entropy = [-sum(p * math.log(p) for p in row if p > 0) for row in PROBABILITIES]
    gaps = [
        math.log(ref / row[t]) for ref, row, t in zip(REFERENCE, PROBABILITIES, TAKEN, strict=True)
    ]
    kl = [math.exp(d) - d - 1 for d in gaps]
    policy = (sum(surrogate) - 0.02 * sum(entropy) + 0.01 * sum(kl)) / 2
    assert found.policy.item() == pytest.approx(policy, abs=1e-9)
    critic = 0.5 * sum((v - g) ** 2 for v, g in zip(VALUES, RETURNS, strict=True)) / 2 / 2
    assert found.critic.item() == pytest.approx(critic, abs=1e-9)
    assert found.entropy.item() == pytest.approx(sum(entropy) / 2, abs=1e-9)
    assert found.kl.item() == pytest.approx(sum(kl) / 2, abs=1e-9)
    # The first ratio is 2, and the second one 1.
    assert found.clipped.item() == 0.5


def test_without_a_reference_there_is_no_kl_term():
    assert made(settings(), reference=False).kl.item() == 0.0
