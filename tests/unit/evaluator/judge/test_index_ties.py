"""Indices of equal values, where another input may decide between them."""

from __future__ import annotations

import pytest
import torch

MASKED = """
import torch

def inputs(case, generator):
    scores = torch.randn(64, 32, generator=generator)
    return scores, torch.rand(64, 32, generator=generator) < 0.5

def reference(scores, allowed):
    return scores.masked_fill(~allowed, float("-inf")).argmax(-1)
"""
NESTED = """
import torch

def inputs(case, generator):
    return ((torch.randint(4, (64, 32), generator=generator), 2.0),)

def reference(pair):
    return (pair[0] * pair[1]).argmax(-1)
"""


@pytest.mark.parametrize("timed", [False, True])
def test_a_place_that_only_the_mask_calls_equal_is_wrong(judge, timed):
    judge.load(MASKED)
    judge.map()
    scores, allowed = judge.inputs(judge.sample(timed=timed))
    right = torch.where(allowed, scores, -torch.inf).argmax(-1)
    first = allowed.to(torch.uint8).argmax(-1)

    def wrong(output):
        if timed:
            return judge.timed("candidate", output, expect=True, compare=True)["wrong"]
        return judge.check(output)["wrong"]

    assert wrong(right) == ""
    assert wrong(first) == "values"


def test_any_of_the_largest_scores_is_right(judge):
    judge.load(MASKED)
    judge.map()
    scores, allowed = judge.inputs(judge.sample("small_integers"))
    values = torch.where(allowed, scores, -torch.inf)
    last = 31 - values.flip(-1).argmax(-1)

    assert not torch.equal(last, values.argmax(-1))
    assert judge.check(last)["wrong"] == ""


def test_any_of_the_largest_values_inside_of_a_tuple_is_right(judge):
    judge.load(NESTED)
    judge.map()
    ((values, _),) = judge.inputs(judge.sample())
    last = 31 - values.flip(-1).argmax(-1)

    assert not torch.equal(last, values.argmax(-1))
    assert judge.check(last)["wrong"] == ""
    assert judge.check(last * 0)["wrong"] == "values"
