"""The critic: a head of two layers on the model's last hidden state of a prompt.

The reward that is left depends on the step of the episode, which the prompt does not show. So the
critic also gets the share of the steps that are over.
"""

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
            self.first, self.last = nn.Linear(width + 1, hidden), nn.Linear(hidden, 1)
        # A first estimate of 0 makes the first advantages those of the rewards.
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, states: Tensor, over: Tensor) -> Tensor:
        """Return values, floating (N,), of hidden states (N, H) and shares of steps (N,)."""
        known = torch.cat([states.detach().float(), over.float()[:, None]], dim=-1)
        found: Tensor = self.last(torch.tanh(self.first(known)))[:, 0]
        return found
