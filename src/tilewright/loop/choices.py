"""Probabilities of sentences from the log-probabilities of their tokens.

The rule is that of TWOSOME (Tan et al. 2024, arXiv 2401.14151, section on normalisation), which
MTMC uses for its decider (arXiv 2511.20100). The sum favours short sentences; the other two rules
divide by the number of tokens or of words.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Literal

Normalisation = Literal["sum", "token", "word"]


def sentence_scores(
    logprobs: Sequence[Sequence[float]], sentences: Sequence[str], rule: Normalisation
) -> list[float]:
    """Return the log-score of each sentence: the sum over its tokens, or a mean.

    `logprobs` holds the tokens of each sentence. `token` divides by their number, and `word` by the
    number of words of the sentence.
    """
    found = []
    for row, sentence in zip(logprobs, sentences, strict=True):
        lengths = {"sum": 1, "token": len(row), "word": len(sentence.split())}
        found.append(math.fsum(row) / max(lengths[rule], 1))
    return found


def softmax(scores: Sequence[float]) -> list[float]:
    """Return the probabilities that are proportional to the exponentials of scores."""
    # The largest score is subtracted so that no exponential overflows; it cancels.
    weights = [math.exp(score - max(scores)) for score in scores]
    return [weight / math.fsum(weights) for weight in weights]


def most_likely(probabilities: Sequence[float]) -> int:
    """Return the place of the largest probability; of equal ones the first."""
    return max(range(len(probabilities)), key=probabilities.__getitem__)


def sampled(probabilities: Sequence[float], draw: random.Random) -> int:
    """Return a place with its probability."""
    return draw.choices(range(len(probabilities)), weights=probabilities)[0]
