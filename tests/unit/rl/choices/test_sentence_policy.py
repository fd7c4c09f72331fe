"""The policy of TWOSOME: its golden vector in each mode, and its gradient."""

import math

import pytest
import torch

from tilewright.loop.choices import sentence_scores as plain_scores
from tilewright.rl.choices.sentence_policy import entropies, log_policy, sentence_scores

ROWS = [[-0.1, -0.2, -0.3], [-0.05, -0.4], [-1.0]]
GOLDEN = {"sum": (0.3531, 0.4102, 0.2367), "token": (0.4124, 0.4022, 0.1853)}


def table(rows):
    longest = max(map(len, rows))
    padded = [[*row, *[float("nan")] * (longest - len(row))] for row in rows]
    values = torch.tensor(padded, dtype=torch.float64)
    tokens = torch.tensor([[place < len(row) for place in range(longest)] for row in rows])
    return values[None], tokens[None]


@pytest.mark.parametrize("rule", ["sum", "token", "word"])
def test_golden_probabilities(rule):
    """TWOSOME (Tan et al. 2024): exp(score) / sum, score = sum of log p over its length."""
    words = [2, 1, 1]
    lengths = {"sum": [1, 1, 1], "token": [3, 2, 1], "word": words}[rule]
    scores = [sum(row) / length for row, length in zip(ROWS, lengths, strict=True)]
    whole = sum(map(math.exp, scores))
    wanted = [math.exp(score) / whole for score in scores]
    values, tokens = table(ROWS)
    made = sentence_scores(values, tokens, torch.tensor([words]), rule)
    found = log_policy(made, torch.ones(1, 3, dtype=torch.bool)).exp()[0].tolist()
    assert found == pytest.approx(wanted, abs=1e-9)
    if rule in GOLDEN:
        assert found == pytest.approx(GOLDEN[rule], abs=1e-4)
    sentences = ["two words", "one", "one"]
    assert plain_scores(ROWS, sentences, rule) == pytest.approx(made[0].tolist(), abs=1e-9)


def test_sentences_that_are_not_legal_have_no_probability_and_no_gradient():
    scores = torch.tensor([[0.5, -1.0, 3.0]], dtype=torch.float64, requires_grad=True)
    legal = torch.tensor([[True, True, False]])
    made = log_policy(scores, legal)
    assert made.exp()[0, :2].sum().item() == pytest.approx(1.0)
    assert made[0, 2] == -math.inf
    (made[0, 0] + entropies(made)[0]).backward()
    assert scores.grad[0, 2] == 0.0
    assert bool(scores.grad.isfinite().all())


def test_the_gradient_of_the_log_probability_agrees_with_finite_differences():
    scores = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    legal = torch.tensor([[True] * 4, [True, True, True, False]])

    def read(values):
        made = log_policy(values, legal)
        return made[:, 0], entropies(made)

    assert torch.autograd.gradcheck(read, (scores,))
