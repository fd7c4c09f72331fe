"""Rows of learning to choose: a prompt, its options, the selected one, and all log-scores."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.loop.choices import Normalisation, sentence_scores, softmax


@dataclass(frozen=True, slots=True)
class ChoicePrompt:
    """The tokens of a state: its prompt and its options. Equal ones pass the model once."""

    prompt: tuple[int, ...]
    options: tuple[tuple[int, ...], ...]
    words: tuple[int, ...]
    """Number of words of each option."""


@dataclass(frozen=True, slots=True)
class ScoredChoices:
    """A model's view of a state."""

    logprobs: tuple[tuple[float, ...], ...]
    """Natural log-probability of each token of each option."""
    values: tuple[float, ...]
    """The expected return by the critic, at each step of an episode."""

    def chances(self, sentences: tuple[str, ...], rule: Normalisation) -> list[float]:
        """Return the probability of each option (TWOSOME, Tan et al. 2024)."""
        return softmax(sentence_scores(self.logprobs, sentences, rule))


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """A decision as a row of training; the functions for rows of tokens take it as one token."""

    state: ChoicePrompt
    step: int
    """Its place in its episode, from 0."""
    taken: int
    scores: tuple[float, ...]
    """Log-score of each option before the step."""
    advantage: float
    returned: float
    """The return that the critic learns."""

    @property
    def log_probability(self) -> float:
        """Log-probability of the selected option before the step."""
        return math.log(softmax(self.scores)[self.taken])
