"""Outputs of an earlier call are known again; those of code that draws are not taken for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tilewright.evaluator.judge.earlier_outputs import MAX_ELEMENTS, EarlierOutputs
from tilewright.evaluator.judge_client.messages import CallAnswer

WRONG, RIGHT = CallAnswer("values", "", None, [], []), CallAnswer("", "", None, [], [])


def sample(*values: torch.Tensor, random: bool = True) -> Any:
    return SimpleNamespace(values=lambda: list(values), random=random)


def coins(count: int, seed: int) -> torch.Tensor:
    return torch.randint(0, 2, (count,), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("first", [WRONG, RIGHT])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.float8_e4m3fn, torch.complex64])
def test_the_outputs_of_an_earlier_call_are_repeated(first, dtype):
    seen, kept = EarlierOutputs(), coins(512, 1).to(dtype)
    assert not seen.marked(first, sample(kept), [kept]).repeated
    assert seen.marked(WRONG, sample(coins(512, 2).to(dtype)), [kept.clone()]).repeated


def test_code_that_draws_repeats_nothing():
    seen = EarlierOutputs()
    for seed in range(40):
        drawn = coins(256, 1000 + seed)
        assert not seen.marked(WRONG, sample(coins(256, seed)), [drawn]).repeated


def test_an_output_that_inputs_hardly_change_may_stay_as_it_is():
    seen, expected, drawn = EarlierOutputs(), coins(4096, 1), coins(4096, 2)
    seen.marked(WRONG, sample(expected), [drawn])
    moved = expected.clone()
    moved[:63] = 1 - moved[:63]
    assert not seen.marked(WRONG, sample(moved), [drawn]).repeated
    moved[63] = 1 - moved[63]
    assert seen.marked(WRONG, sample(moved), [drawn]).repeated


def test_elements_of_a_large_output_are_kept_at_equal_distances():
    seen, kept = EarlierOutputs(), torch.zeros(3 * MAX_ELEMENTS)
    seen.marked(WRONG, sample(torch.ones(3 * MAX_ELEMENTS)), [kept])
    (stored,) = seen._expected.values()
    assert MAX_ELEMENTS / 2 < len(stored[0]) <= MAX_ELEMENTS
    assert seen.marked(WRONG, sample(kept), [kept]).repeated


@pytest.mark.parametrize(("answer", "random"), [(RIGHT, True), (WRONG, False)])
def test_right_outputs_and_references_that_draw_nothing_do_not_count(answer, random):
    seen, kept = EarlierOutputs(), coins(512, 1)
    seen.marked(WRONG, sample(coins(512, 3), random=random), [kept])
    assert not seen.marked(answer, sample(coins(512, 4), random=random), [kept]).repeated


def test_an_output_that_cannot_be_read_and_one_of_another_dtype_are_no_repetition():
    seen, kept = EarlierOutputs(), coins(512, 1)
    seen.marked(WRONG, sample(kept), [kept])
    assert not seen.marked(WRONG, sample(coins(512, 2)), [None]).repeated
    other = kept.to(torch.int32)
    assert not seen.marked(WRONG, sample(coins(512, 2).to(torch.int32)), [other]).repeated
