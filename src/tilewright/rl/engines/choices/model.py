"""A causal language model with a critic, as the policy of choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tilewright.loop.choices import Normalisation
from tilewright.loop.policies.base import Message
from tilewright.rl.choices.choice_rows import ChoicePrompt, ScoredChoices
from tilewright.rl.choices.sentence_policy import log_policy, sentence_scores
from tilewright.rl.engines.choices.critic import Critic
from tilewright.rl.engines.choices.option_scores import score_options

LOG_DIGITS = 6
"""Digits after the point of logged log-probabilities and values. Training uses the rounded ones, so
that a log holds exactly what was trained on."""


class LanguageChoices:
    """Scores the options of states. Lifetime: one session of a training."""

    def __init__(
        self,
        name: str,
        model: Any,  # noqa: ANN401 - any model of transformers
        critic: Critic,
        tokenizer: Any,  # noqa: ANN401 - untyped package
        *,
        rows: int,
        steps: int,
    ) -> None:
        self.name, self.model, self.critic = name, model, critic
        self._tokenizer, self._rows, self._steps = tokenizer, rows, steps
        self._encoded: dict[tuple[tuple[Message, ...], tuple[str, ...]], ChoicePrompt] = {}

    def encode(self, messages: Sequence[Message], options: Sequence[str]) -> ChoicePrompt:
        """Return the tokens of a prompt, with its chat template, and of the options after it."""
        key = tuple(messages), tuple(options)
        if key not in self._encoded:
            self._encoded[key] = self._encode(*key)
        return self._encoded[key]

    def _encode(self, messages: Sequence[Message], options: Sequence[str]) -> ChoicePrompt:
        sent = [{"role": item.role, "content": item.text} for item in messages]
        text = self._tokenizer.apply_chat_template(sent, tokenize=False, add_generation_prompt=True)
        prompt = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        found = [self._tokenizer(item, add_special_tokens=False)["input_ids"] for item in options]
        words = tuple(len(item.split()) for item in options)
        return ChoicePrompt(tuple(prompt), tuple(map(tuple, found)), words)

    def score(self, states: Sequence[ChoicePrompt]) -> list[ScoredChoices]:
        """Return the log-probabilities of the options' tokens, and the critic's values, rounded."""
        found = []
        with torch.no_grad():
            for start in range(0, len(states), self._rows):
                part = states[start : start + self._rows]
                made = score_options(self.model, part, self.pad)
                values = [self.values(made.states, [n] * len(part)) for n in range(self._steps)]
                by_state = torch.stack(values, dim=1)
                for row, state in enumerate(part):
                    logprobs = tuple(
                        _rounded(made.logprobs[row, place, : len(option)])
                        for place, option in enumerate(state.options)
                    )
                    found.append(ScoredChoices(logprobs, _rounded(by_state[row])))
        return found

    def values(self, hidden: Tensor, steps: Sequence[int]) -> Tensor:
        """Return the critic's values, floating (N,), of hidden states (N, H) at steps."""
        over = torch.tensor(steps, device=hidden.device) / self._steps
        found: Tensor = self.critic(hidden, over)
        return found

    def log_policy(
        self, states: Sequence[ChoicePrompt], rule: Normalisation
    ) -> tuple[Tensor, Tensor]:
        """Return log pi of all options, float64 (N, K) with gradient, and hidden states (N, H)."""
        parts, hidden = [], []
        for start in range(0, len(states), self._rows):
            made = score_options(self.model, states[start : start + self._rows], self.pad)
            scores = sentence_scores(made.logprobs, made.tokens, made.words, rule)
            parts.append(log_policy(scores, made.legal))
            hidden.append(made.states)
        most = max(part.shape[1] for part in parts)
        padded = [
            torch.nn.functional.pad(part, (0, most - part.shape[1]), value=-torch.inf)
            for part in parts
        ]
        return torch.cat(padded), torch.cat(hidden)

    @property
    def pad(self) -> int:
        """The token that fills short rows."""
        return int(self._tokenizer.pad_token_id)


def _rounded(values: Tensor) -> tuple[float, ...]:
    return tuple(round(value, LOG_DIGITS) for value in values.tolist())
