"""The judge after a timed call: snapshot, comparison, input check, next inputs."""

from __future__ import annotations

import mmap
import os

import pytest
import torch

from tests.unit.evaluator.judge.test_process import FUNCTION, NOWHERE
from tilewright.wire.tensors import build


@pytest.mark.parametrize("unreadable", ["candidate", "eager"])
@pytest.mark.parametrize("address", [*NOWHERE, (1 << 64) - 1])
def test_a_timed_output_that_cannot_be_read_is_wrong(judge, address, unreadable):
    judge.load(FUNCTION)
    judge.map("eager")
    judge.map()
    x, y = judge.inputs(judge.sample(timed=True))
    right = torch.relu(x + y)
    judge.ask("publish", sample="d", runner="eager", base=0)
    for runner in ("eager", "candidate"):
        changes = {"addresses": [address]} if runner == unreadable else {}
        answer = judge.timed(runner, right, compare=runner == "candidate", **changes)

    assert answer["wrong"] == "values"
    assert "cannot be read" in answer["message"]


def test_perturbed_inputs_are_published_with_their_expected_outputs(judge):
    judge.load(FUNCTION)
    judge.map()
    sample = judge.sample(timed=True)
    before = [value.clone() for value in judge.inputs(sample)]
    judge.ask("publish", sample="d", runner="candidate", base=0, perturb=9)
    after = build(sample["tree"], judge.area.inputs, 0)
    x, y = (value.clone() for value in after)
    assert not torch.equal(before[0], x)
    answer = judge.timed("candidate", torch.relu(x + y), expect=True, compare=True)

    assert (answer["wrong"], answer["mutated"]) == ("", [])


def test_timed_outputs_are_compared_with_the_baselines(judge):
    judge.load(FUNCTION)
    judge.map("eager")
    judge.map()
    x, y = judge.inputs(judge.sample(timed=True))
    right = torch.relu(x + y)
    judge.ask("publish", sample="d", runner="eager", base=0)
    for candidate, wrong in (
        (right, ""),
        (right + 1, "values"),
        (right * float("nan"), "nonfinite"),
    ):
        assert judge.timed("eager", right)["wrong"] == ""
        assert judge.timed("candidate", candidate, compare=True)["wrong"] == wrong


def test_a_snapshot_is_a_copy_of_the_runners_memory(judge):
    judge.load(FUNCTION)
    judge.map("eager")
    judge.map()
    x, y = judge.inputs(judge.sample(timed=True))
    right = torch.relu(x + y)
    theirs = right + 1
    judge.timed("candidate", theirs)
    assert judge.kept[0].data_ptr() == theirs.data_ptr()
    theirs.copy_(right)

    assert judge.timed("eager", right, compare=True)["wrong"] == "values"


def test_published_rules_compare_timed_outputs_by_their_tolerance(judge):
    judge.load(FUNCTION, rule={"name": "allclose", "tolerance": 1e-2})
    judge.map("eager")
    judge.map()
    x, y = judge.inputs(judge.sample(timed=True))
    right = torch.relu(x + y)
    judge.timed("eager", right)

    assert judge.timed("candidate", right + 5e-3, compare=True)["wrong"] == ""


HARD_INTEGERS = """
import torch

def inputs(case, generator):
    return (torch.randn(case["n"], 8, generator=generator),)

def reference(x):
    return ((x + 1e8) - 1e8 > 0).int()
"""


def test_timed_integers_are_exact_where_the_reference_is_certain(judge):
    judge.load(HARD_INTEGERS)
    judge.map("eager")
    judge.map()
    (x,) = judge.inputs(judge.sample(timed=True))
    rounded, exact = ((x + 1e8) - 1e8 > 0).int(), (x > 0).int()
    assert not torch.equal(rounded, exact)
    judge.timed("eager", rounded)
    assert judge.timed("candidate", exact, compare=True)["wrong"] == ""

    judge.timed("eager", rounded)
    wrong = exact.clone()
    wrong[x < 0] = 1
    assert judge.timed("candidate", wrong, compare=True)["wrong"] == "values"


def test_the_answer_to_a_timed_call_publishes_the_next_inputs(judge):
    judge.load(FUNCTION)
    judge.map()
    sample = judge.sample(timed=True)
    x = judge.inputs(sample)[0].clone()
    following = {"sample": "d", "runner": "candidate", "base": 4096, "perturb": None}
    judge.timed("candidate", x, keep=False, next=following)

    assert torch.equal(build(sample["tree"], judge.area.inputs, 4096)[0], x)


def test_mutation_in_a_timed_call_is_found_without_keeping_outputs(judge):
    judge.load(FUNCTION)
    judge.map()
    x, _ = judge.inputs(judge.sample(timed=True))
    x.zero_()

    assert judge.timed("candidate", x, keep=False)["mutated"] == ["input 0"]


@pytest.mark.parametrize("base", [0, 4096])
def test_the_input_copy_is_checked_in_the_requested_windows_only(judge, base):
    judge.load(FUNCTION)
    input_copy = mmap.mmap(-1, len(judge.area.inputs), flags=mmap.MAP_PRIVATE)
    judge.map(input_copy=torch.frombuffer(input_copy, dtype=torch.uint8).data_ptr())
    sample = judge.sample(timed=True)
    x = judge.inputs(sample, base)[0]
    # A runner does so before a timed call; the arena stays unchanged.
    input_copy[:] = judge.area.inputs[:]
    size = sample["size"]

    def seen(*look: list[int]) -> list[str]:
        answer = judge.timed("candidate", x, keep=False, base=base, look=list(look))
        return list(answer["mutated"])

    assert seen([0, size]) == []
    input_copy[base + 200] ^= 1
    assert seen([0, 200], [201, size]) == []
    assert seen() == []
    assert seen([0, 1], [200, 201]) == ["the inputs of a timed call"]


def test_withheld_input_bytes_are_written_when_a_runner_is_ready(judge):
    judge.load(FUNCTION)
    input_copy = mmap.mmap(-1, len(judge.area.inputs), flags=mmap.MAP_PRIVATE)
    judge.map(input_copy=torch.frombuffer(input_copy, dtype=torch.uint8).data_ptr())
    sample = judge.sample(timed=True)
    x, y = (value.clone() for value in judge.inputs(sample))
    given = {"sample": "d", "runner": "candidate", "base": 0, "late": 7}
    judge.ask("publish", **given)
    hidden = build(sample["tree"], judge.area.inputs, 0)
    assert not (torch.equal(x, hidden[0]) and torch.equal(y, hidden[1]))
    input_copy[:] = judge.area.inputs[:]
    assert judge.ask("write_delayed", **given)["written"]
    for memory in (judge.area.inputs, input_copy):
        seen = build(sample["tree"], memory, 0)
        assert torch.equal(x, seen[0])
        assert torch.equal(y, seen[1])
    answer = judge.timed("candidate", torch.relu(x + y), look=[[0, sample["size"]]])
    assert (answer["wrong"], answer["mutated"]) == ("", [])


def test_no_input_bytes_are_withheld_where_memory_is_read_only(judge):
    judge.load(FUNCTION)
    judge.map(memory=os.O_RDONLY)
    sample = judge.sample(timed=True)
    x, y = (value.clone() for value in judge.inputs(sample))
    given = {"sample": "d", "runner": "candidate", "base": 0, "late": 7}
    judge.ask("publish", **given)
    seen = build(sample["tree"], judge.area.inputs, 0)
    assert torch.equal(x, seen[0])
    assert torch.equal(y, seen[1])
    assert judge.ask("write_delayed", **given)["written"]


def test_input_bytes_that_cannot_be_written_are_reported(judge):
    judge.load(FUNCTION)
    judge.map(input_copy=16)
    judge.sample(timed=True)
    given = {"sample": "d", "runner": "candidate", "base": 0, "late": 7}
    judge.ask("publish", **given)
    assert not judge.ask("write_delayed", **given)["written"]


def test_a_changed_arena_is_found_where_it_serves_as_input_copy(judge):
    judge.load(FUNCTION)
    judge.map()
    sample = judge.sample(timed=True)
    x, _ = judge.inputs(sample)

    answer = judge.timed("candidate", x, keep=False, look=[[0, 8]])
    assert answer["mutated"] == ["the inputs of a timed call"]


def test_the_input_copy_is_checked_before_the_next_inputs_are_published(judge):
    judge.load(FUNCTION)
    input_copy = mmap.mmap(-1, len(judge.area.inputs), flags=mmap.MAP_PRIVATE)
    judge.map(input_copy=torch.frombuffer(input_copy, dtype=torch.uint8).data_ptr())
    sample = judge.sample(timed=True)
    x, _ = judge.inputs(sample)
    following = {"sample": "d", "runner": "candidate", "base": 0, "perturb": 9}
    look = [[0, sample["size"]]]
    input_copy[:] = judge.area.inputs[:]

    assert judge.timed("candidate", x, look=look, next=following)["mutated"] == []
