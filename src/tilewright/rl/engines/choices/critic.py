"""The critic: a head of two layers on the model's last hidden state of a prompt."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Critic(nn.Module):
    """Estimates the return of a state. Its gradient ends at its input, so no policy gets it.

    TWOSOME (Tan et al. 2024, section on the critic) has such a head on the last token's state.
    Lifetime: one training.
    """

    def __init__(self, width: int, hidden: int, seed: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.first, self.last = nn.Linear(width, hidden), nn.Linear(hidden, 1)
        # A first estimate of 0 makes the first advantages those of the rewards.
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, states: Tensor) -> Tensor:
        """Return values, floating (N,), of hidden states (N, H)."""
        found: Tensor = self.last(torch.tanh(self.first(states.detach().float())))[:, 0]
        return found
