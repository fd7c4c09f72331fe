"""The update of a batch: minibatches of decisions, each one step of two optimizers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from tilewright.loop.choices import Normalisation
from tilewright.loop.random_values import chooser
from tilewright.rl.choices.choice_loss import ChoiceBatch, choice_loss
from tilewright.rl.choices.choice_rows import ChoicePrompt, ChoiceRow
from tilewright.rl.engines.choices.model import LanguageChoices
from tilewright.rl.learning_rate import rate_factor
from tilewright.rl.presets import Preset

Means = dict[str, float]


@dataclass
class Optimizers:
    """AdamW of the policy and that of the critic. Lifetime: one session of a training."""

    policy: torch.optim.Optimizer
    critic: torch.optim.Optimizer

    def state(self) -> dict[str, Any]:
        """Return the state of both, for a checkpoint."""
        return {"policy": self.policy.state_dict(), "critic": self.critic.state_dict()}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from the state in a checkpoint."""
        self.policy.load_state_dict(state["policy"])
        self.critic.load_state_dict(state["critic"])


def made_optimizers(policy: LanguageChoices, preset: Preset) -> Optimizers:
    """Return optimizers with the rates of the settings."""
    section, choices = preset.optimizer, preset.choices
    decay = section.weight_decay
    return Optimizers(
        torch.optim.AdamW(policy.model.parameters(), lr=section.learning_rate, weight_decay=decay),
        torch.optim.AdamW(
            policy.critic.parameters(), lr=choices.critic_learning_rate, weight_decay=decay
        ),
    )


@dataclass
class InitialModel:
    """The initial model. Its weights stay, so a state passes it once. Lifetime: one session."""

    model: LanguageChoices
    _known: dict[ChoicePrompt, Tensor] = field(default_factory=dict)
    """log pi of all options by state, float64 (K,)."""

    def log_probabilities(self, rows: Sequence[ChoiceRow], rule: Normalisation) -> list[float]:
        """Return the log-probability of the selected option of each row."""
        states = dict.fromkeys(row.state for row in rows)
        if fresh := [state for state in states if state not in self._known]:
            with torch.no_grad():
                found, _ = self.model.log_policy(fresh, rule)
            self._known |= zip(fresh, found, strict=True)
        return [float(self._known[row.state][row.taken]) for row in rows]


@dataclass(frozen=True)
class ChoiceUpdate:
    """Updates a policy by batches. Lifetime: one session of a training."""

    policy: LanguageChoices
    reference: InitialModel | None
    """`None`: the loss has no KL term."""
    optimizers: Optimizers
    preset: Preset
    seed: int

    def update(self, step: int, rows: Sequence[ChoiceRow]) -> Means:
        """Train on the rows of step number `step`, from 0; return means over its minibatches."""
        choices, factor = self.preset.choices, rate_factor(step, self.preset.optimizer)
        rates = (
            (self.optimizers.policy, self.preset.optimizer.learning_rate),
            (self.optimizers.critic, choices.critic_learning_rate),
        )
        for optimizer, rate in rates:
            for group in optimizer.param_groups:
                group["lr"] = rate * factor
        found: list[Means] = []
        for epoch in range(choices.epochs):
            order = list(range(len(rows)))
            chooser(self.seed, "minibatches", step, epoch).shuffle(order)
            size = -(-len(order) // choices.minibatches)
            for start in range(0, len(order), size):
                part = [rows[number] for number in order[start : start + size]]
                found.append(self._minibatch(part, critic_only=step < choices.critic_only_batches))
        means = {name: sum(item[name] for item in found) / len(found) for name in found[0]}
        return means | {"learning_rate": self.preset.optimizer.learning_rate * factor}

    def _minibatch(self, rows: Sequence[ChoiceRow], *, critic_only: bool) -> Means:
        rule, section = self.preset.choices.normalisation, self.preset.optimizer
        # A state that occurs several times passes the model once.
        states = list(dict.fromkeys(row.state for row in rows))
        place = {state: number for number, state in enumerate(states)}
        log_pi, hidden = self.policy.log_policy(states, rule)
        at = torch.tensor([place[row.state] for row in rows], device=log_pi.device)
        values = self.policy.values(hidden[at], [row.step for row in rows])
        made = choice_loss(log_pi[at], values, self._batch(rows, at.device), self.preset)
        for optimizer in (self.optimizers.policy, self.optimizers.critic):
            optimizer.zero_grad()
        (made.critic if critic_only else made.policy + made.critic).backward()
        norms = [
            float(clip_grad_norm_(part.parameters(), section.max_grad_norm))
            for part in (self.policy.model, self.policy.critic)
        ]
        if not critic_only:
            self.optimizers.policy.step()
        self.optimizers.critic.step()
        return {
            "loss": float(made.policy.detach()),
            "critic_loss": float(made.critic.detach()),
            "entropy": float(made.entropy.detach()),
            "kl": float(made.kl.detach()),
            "clipped": float(made.clipped.detach()),
            "gradient": norms[0],
            "critic_gradient": norms[1],
        }

    def _batch(self, rows: Sequence[ChoiceRow], device: torch.device) -> ChoiceBatch:
        def column(values: list[float]) -> Tensor:
            return torch.tensor(values, dtype=torch.float64, device=device)

        initial = None
        if self.reference is not None:
            rule = self.preset.choices.normalisation
            initial = column(self.reference.log_probabilities(rows, rule))
        return ChoiceBatch(
            torch.tensor([row.taken for row in rows], device=device),
            column([row.log_probability for row in rows]),
            column([row.advantage for row in rows]),
            column([row.returned for row in rows]),
            initial,
        )
