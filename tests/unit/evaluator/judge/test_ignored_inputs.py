"""Memory for outputs that a caller hands over holds other values before each call."""

from __future__ import annotations

import pytest
import torch

INTO = """
import torch

def inputs(case, generator):
    return torch.randn(4, 8, generator=generator), torch.zeros(4, 8), torch.zeros(4, 8).int()

def reference(x, sums, signs):
    sums[...] = x + 1
    signs[...] = x.sign()
"""
NESTED = """
import torch

def inputs(case, generator):
    x = torch.randn(4, 8, generator=generator)
    return ((x, torch.zeros_like(x)),)

def reference(data):
    data[1][...] = data[0] + 1
    return data[1]
"""


def test_memory_that_the_reference_overwrites_is_random_in_each_call(judge):
    judge.load(INTO)
    judge.map()
    sample = judge.sample()
    first = [value.clone() for value in judge.inputs(sample)]
    assert all((value != 0).any() for value in first)
    judge.sample(timed=True)
    judge.renew(7)
    x, *memory = judge.inputs(sample)
    assert not any(torch.equal(*pair) for pair in zip(memory, first[1:], strict=True))
    # The reference gets it too, and computes the same.
    memory[0].copy_(x + 1)
    memory[1].copy_(x.sign())
    answer = judge.timed("candidate", look=None, expect=True, compare=True)
    assert (answer["wrong"], answer["mutated"]) == ("", [])


def test_a_tensor_inside_of_a_tuple_is_filled_alone(judge):
    judge.load(NESTED)
    judge.map()
    ((x, memory),) = judge.inputs(judge.sample())
    assert (memory != 0).all()
    assert judge.check(memory.copy_(x + 1))["wrong"] == ""


@pytest.mark.parametrize(
    "body",
    ["sums += x", "sums[0] = x[0]", "sums.mul_(0.5).add_(x)"],
)
def test_memory_whose_values_matter_keeps_them(judge, body):
    judge.load(INTO.replace("sums[...] = x + 1", body))
    judge.map()
    _, sums, signs = judge.inputs(judge.sample())
    assert (sums == 0).all()
    assert (signs != 0).any()


def test_values_of_the_generators_first_draw_are_not_those_of_the_noise(judge):
    body = "return (torch.randn(4, 8, generator=generator),)\n\ndef reference(x):\n    x.mul_(2)\n"
    judge.load(f"import torch\n\ndef inputs(case, generator):\n    {body}")
    judge.map()
    (x,) = judge.inputs(judge.sample(seed=3))

    assert torch.equal(x, torch.randn(4, 8, generator=torch.Generator().manual_seed(3)))


def test_the_official_protocol_leaves_the_generators_values(judge):
    judge.load(INTO, rule={"name": "allclose", "tolerance": 1e-2})
    judge.map()
    assert (judge.inputs(judge.sample())[1] == 0).all()
