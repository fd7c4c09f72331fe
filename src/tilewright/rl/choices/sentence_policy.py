"""The policy over sentences: a softmax of scores that follow from token log-probabilities."""

from __future__ import annotations

import torch
from torch import Tensor

from tilewright.loop.choices import Normalisation
from tilewright.rl.masked_tensors import require_shape


def sentence_scores(logprobs: Tensor, tokens: Tensor, words: Tensor, rule: Normalisation) -> Tensor:
    """Return the log-score of each sentence, float64 (N, K), with gradient.

    It is the sum of the token log-probabilities (TWOSOME, Tan et al. 2024, arXiv 2401.14151,
    section on normalisation). `token` divides it by the number of tokens, `word` by that of words,
    and `sum` by nothing. `logprobs` are floating (N, K, L): token L of sentence K after the
    prompt of state N. `tokens` is bool of that shape, and `words` are integers (N, K).
    """
    require_shape("tokens", tokens, logprobs.shape)
    require_shape("words", words, logprobs.shape[:2])
    whole = torch.where(tokens, logprobs.to(torch.float64), 0.0).sum(-1)
    if rule == "sum":
        return whole
    count = tokens.sum(-1) if rule == "token" else words
    return whole / count.clamp(min=1).to(torch.float64)


def log_policy(scores: Tensor, legal: Tensor) -> Tensor:
    """Return log pi of each sentence, float64 (N, K), minus infinity where it is not legal.

    pi is the softmax of the scores over the legal sentences (TWOSOME, equation of the policy).
    `legal` is bool (N, K), with at least one true value in each row.
    """
    require_shape("legal", legal, scores.shape)
    return scores.to(torch.float64).masked_fill(~legal, -torch.inf).log_softmax(-1)


def entropies(log_pi: Tensor) -> Tensor:
    """Return the entropy of each row in nats, float64 (N,), with gradient."""
    known = log_pi.isfinite()
    finite = torch.where(known, log_pi, 0.0)
    return -torch.where(known, finite.exp() * finite, 0.0).sum(-1)
