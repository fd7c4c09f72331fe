"""Weights in the judge: resampled, matched, applied, published, reset."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.judge_role import PLAIN
from tilewright.wire.tensors import build

FUNCTION = """
import torch

def inputs(case, generator):
    return torch.randn(case["n"], 8, generator=generator), torch.randn(8, generator=generator)

def reference(x, y):
    return torch.relu(x + y)
"""
MODULE = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.gain = torch.nn.Parameter(torch.ones(8))

    def forward(self, x):
        return self.first(x) * self.gain

def get_inputs():
    return [torch.rand(4, 8)]

def get_init_inputs():
    return []
"""


def seeded(source: str = MODULE) -> torch.nn.Module:
    """Build the module that the judge holds, with the weights of the init seed."""
    space: dict[str, Any] = {}
    exec(source, space)
    torch.manual_seed(PLAIN["init_seed"])
    model: torch.nn.Module = space["Model"]()
    return model


def test_init_inputs_are_handed_over(judge):
    source = MODULE.replace("return []", "return [torch.arange(3.0), 7]").replace(
        "(self)", "(self, table, n)", 1
    )
    answer = judge.load(source, "module").fields
    judge.map()
    judge.ask("publish_init", runner="candidate")
    table, n = build(answer["init"], judge.area.inputs, 0)

    assert (table.tolist(), n) == ([0.0, 1.0, 2.0], 7)
    assert answer["is_module"]
    assert answer["init_bytes"] >= 12


def test_new_weights_reach_the_reference_and_the_candidate(judge):
    judge.load(MODULE, "module")
    judge.map()
    model = seeded()
    plan = judge.plan(dict(model.state_dict()))
    assert plan == {"need": []}
    applied = judge.ask("apply_weights", runners=["candidate"])
    assert applied["lacking"] == []
    assert applied["bytes"] >= 4 * (64 + 8 + 8)
    x = judge.inputs(judge.sample())[0].clone()
    assert judge.check(model(x).detach())["wrong"] == "values"
    fresh = judge.published()
    model.load_state_dict(fresh)
    judge.inputs(judge.sample())

    assert judge.check(model(x).detach())["wrong"] == ""
    assert not torch.equal(torch.ones(8), fresh["gain"])


def test_weights_can_be_taken_back(judge):
    judge.load(MODULE, "module")
    judge.map()
    model = seeded()
    judge.plan(dict(model.state_dict()))
    judge.ask("apply_weights", runners=["candidate"])
    judge.ask("reset_weights")
    x = judge.inputs(judge.sample())[0]

    assert judge.check(model(x).detach())["wrong"] == ""


def renamed(judge) -> tuple[dict[str, torch.Tensor], list[str]]:
    """Load the module; return a runner's renamed weights, and the names to be read."""
    judge.load(MODULE, "module")
    judge.map()
    theirs = {f"my.{name}": v.detach() for name, v in seeded().state_dict().items()}
    need = judge.plan(theirs)["need"]
    assert sorted(theirs) == sorted(need)
    return theirs, need


def test_renamed_weights_are_found_by_value(judge):
    theirs, need = renamed(judge)
    places = [theirs[name].data_ptr() for name in need]
    judge.ask("match_weights", runner="candidate", names=need, addresses=places)

    assert judge.ask("apply_weights", runners=["candidate"])["lacking"] == []
    assert set(theirs) == set(judge.published())


@pytest.mark.parametrize("place", [0, (1 << 57) - 1, None])
def test_only_the_weight_that_cannot_be_read_is_lacking(judge, place):
    theirs, need = renamed(judge)
    need.sort(key="my.first.weight".__eq__)
    places = [theirs[name].data_ptr() for name in need[:-1]]
    if place is not None:
        places.append(place)
    judge.ask("match_weights", runner="candidate", names=need, addresses=places)

    assert judge.ask("apply_weights", runners=["candidate"])["lacking"] == ["first.weight"]
    assert set(need[:-1]) == set(judge.published())


def test_other_values_at_the_reported_address_do_not_match(judge):
    theirs, need = renamed(judge)
    theirs["my.first.weight"] = theirs["my.first.weight"] + 1
    places = [theirs[name].data_ptr() for name in need]
    judge.ask("match_weights", runner="candidate", names=need, addresses=places)

    assert judge.ask("apply_weights", runners=["candidate"])["lacking"] == ["first.weight"]


def test_weights_that_a_candidate_lacks_stay_but_constant_defaults_change(judge):
    judge.load(MODULE, "module")
    judge.map()
    model = seeded()
    judge.plan({"first.bias": model.first.bias})
    lacking = judge.ask("apply_weights", runners=["candidate"])["lacking"]
    assert lacking == ["first.weight", "gain"]
    assert {"first.bias"} == set(judge.published())
    model.load_state_dict(judge.published(), strict=False)
    x = judge.inputs(judge.sample())[0]

    # The gain was one everywhere: who skipped it must be wrong now.
    assert judge.check(model(x).detach())["wrong"] == "values"


def test_tied_weights_stay_tied(judge):
    source = MODULE.replace(
        "self.gain =",
        "self.second = torch.nn.Linear(8, 8)\n"
        "        self.second.weight = self.first.weight\n        self.gain =",
    ).replace("self.first(x)", "self.second(self.first(x))")
    judge.load(source, "module")
    judge.map()
    model = seeded(source)
    judge.plan(dict(model.state_dict()))
    assert judge.ask("apply_weights", runners=["candidate"])["lacking"] == []
    model.load_state_dict(judge.published(), strict=False)
    x = judge.inputs(judge.sample())[0]

    assert judge.check(model(x).detach())["wrong"] == ""


def test_a_second_evaluation_draws_other_weights(judge):
    published = []
    for seed in (1, 2):
        judge.load(MODULE, "module")
        judge.map()
        judge.plan(dict(seeded().state_dict()), seed)
        judge.ask("apply_weights", runners=["candidate"])
        published.append(judge.published())
        judge.ask("forget", runners=["candidate"], samples=[])

    assert not torch.equal(published[0]["gain"], published[1]["gain"])


def test_a_function_problem_has_no_weights(judge):
    judge.load(FUNCTION)
    judge.map()

    assert judge.plan({}) == {"need": []}
    assert judge.ask("apply_weights", runners=["candidate"]) == {"lacking": [], "bytes": 0}
    assert judge.ask("reset_weights") == {}
