"""The judge reads each runner's own memory at the reported address, or nothing.

The memory of a runner is a file here, so that an address is an offset in that file only.
`python -m benchmarks --only planted_bugs` plants bugs that these tests must find.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.judge_role import JudgeRole
from tilewright.evaluator.judge.memory_reader import HostMemory, read_tensor
from tilewright.wire.names import OutputMemory
from tilewright.wire.tensors import build

TWO_OUTPUTS = """import torch


def inputs(case, generator):
    return (torch.randn(case["n"], 4, generator=generator),)


def reference(x):
    return x * 3, x.sum(-1)
"""
INPUTS, SIZE, FIRST, SECOND = 1 << 14, 1 << 17, 1 << 16, (1 << 16) + 4099
"""Addresses in a runner's memory; that of the second output is odd within its page."""
BASE = 8192


class Memory:
    """The memory of one side: a file of zeros, into which a test writes."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("runner")
        os.ftruncate(self.fd, SIZE)
        self.maps = os.memfd_create("maps")
        os.write(self.maps, f"0-{SIZE:x} rw-p 00000000 00:00 0\n".encode())

    def write(self, place: int, value: torch.Tensor) -> None:
        data = value.contiguous().numpy().tobytes()
        os.pwrite(self.fd, data[: max(SIZE - place, 0)], place)


@pytest.fixture
def memories(judge: JudgeRole) -> Iterator[dict[str, Memory]]:
    """The memories of baseline and candidate, for a problem of two outputs."""
    judge.load(TWO_OUTPUTS)
    made = {name: Memory() for name in ("eager", "candidate")}
    for name, memory in made.items():
        fields = {"runner": name, "address": INPUTS}
        judge.role.ask("map", fields, fds=(memory.fd, memory.maps, memory.maps))
    yield made
    for memory in made.values():
        os.close(memory.fd)
        os.close(memory.maps)


def sample(judge: JudgeRole) -> dict[str, Any]:
    """Make a sample and write it at `BASE` of both runners; return it and its only input."""
    fields = {"params": {"n": 64}, "variation": "nominal", "seed": 3, "forward_seed": 1}
    answer = judge.ask("sample", sample="d", timed=False, **fields)
    for runner in ("eager", "candidate"):
        written = judge.ask("publish", sample="d", runner=runner, base=BASE)
        assert written == {"written": True}
    return answer


def given(memory: Memory, layout: dict[str, Any]) -> torch.Tensor:
    """Return the input that the judge has written into a runner's memory."""
    data: Any = bytearray(os.pread(memory.fd, layout["size"], INPUTS + BASE))
    (x,) = build(layout["tree"], data, 0)
    return x.clone()  # type: ignore[no-any-return]


def checked(judge: JudgeRole, runner: str, x: torch.Tensor, *places: int) -> dict[str, Any]:
    """Have outputs judged that a runner reports at `places`."""
    judge.timed(runner, base=BASE, addresses=list(places), keep=True)
    return judge.ask("check", sample="d", runner=runner, outputs=judge.put(x * 3, x.sum(-1)))


def timed(judge: JudgeRole, runner: str, *places: int, **changes: Any) -> dict[str, Any]:
    return judge.timed(runner, base=BASE, addresses=list(places), **changes)


def test_each_output_is_read_at_its_runners_reported_address(judge, memories):
    x = given(memories["candidate"], sample(judge))
    memories["candidate"].write(FIRST, x * 3)
    memories["candidate"].write(SECOND, x.sum(-1))

    assert checked(judge, "candidate", x, FIRST, SECOND)["wrong"] == ""
    assert checked(judge, "candidate", x, FIRST + 4, SECOND)["wrong"] == "values"
    assert checked(judge, "candidate", x, FIRST, SECOND - 3)["wrong"] == "values"
    assert checked(judge, "candidate", x, FIRST, FIRST)["wrong"] == "values"
    # What only another side holds is no output of this one.
    assert checked(judge, "eager", x, FIRST, SECOND)["wrong"] == "values"


@pytest.mark.parametrize("place", [SIZE, SIZE - 64, 1 << 40, (1 << 64) - 1])
def test_an_output_that_cannot_be_read_is_wrong(judge, memories, place):
    x = given(memories["candidate"], sample(judge))
    for memory in memories.values():
        memory.write(FIRST, x * 3)
        memory.write(SECOND, x.sum(-1))
        memory.write(min(place, SIZE), x.sum(-1))
    answer = checked(judge, "candidate", x, FIRST, place)
    assert (answer["wrong"], "cannot be read" in answer["message"]) == ("values", True)

    for unreadable in memories:
        for runner in ("eager", "candidate"):
            where = place if runner == unreadable else SECOND
            answer = timed(judge, runner, FIRST, where, compare=runner == "candidate")
        assert (answer["wrong"], "cannot be read" in answer["message"]) == ("values", True)


def test_timed_outputs_are_those_at_the_end_of_each_runners_own_call(judge, memories):
    x = given(memories["candidate"], sample(judge))
    right = memories["eager"], memories["candidate"]
    for memory in right:
        memory.write(FIRST, x * 3)
        memory.write(SECOND, x.sum(-1))
    timed(judge, "eager", FIRST, SECOND)
    # The baseline's next call overwrites its outputs before anything is compared.
    memories["eager"].write(FIRST, x * 0)
    assert timed(judge, "candidate", FIRST, SECOND, compare=True)["wrong"] == ""

    # Now they are what a candidate is held against.
    memories["candidate"].write(FIRST, x * 0)
    timed(judge, "eager", FIRST, SECOND)
    assert timed(judge, "candidate", FIRST, SECOND, compare=True)["wrong"] == ""
    memories["candidate"].write(FIRST, x * 2)
    timed(judge, "eager", FIRST, SECOND)
    assert timed(judge, "candidate", FIRST, SECOND, compare=True)["wrong"] == "values"


def test_inputs_are_compared_in_the_requested_windows_only(judge, memories):
    answer = sample(judge)
    size, memory = answer["size"], memories["candidate"]
    image = torch.frombuffer(bytearray(os.pread(memory.fd, size, INPUTS + BASE)), dtype=torch.uint8)
    start = answer["tree"]["v"][0]["offset"]

    def looked(look: list[list[int]] | None) -> list[str]:
        found = timed(judge, "candidate", FIRST, SECOND, keep=False, look=look)["mutated"]
        return list(found)

    look = [[start, start + 64], [start + 320, start + 448]]
    assert looked(look) == looked(None) == looked([]) == []
    for byte, found in ((0, 1), (63, 1), (64, 0), (319, 0), (320, 1), (447, 1), (448, 0)):
        changed = image.clone()
        changed[start + byte] ^= 1
        memory.write(INPUTS + BASE, changed)
        assert looked(look) == ["input 0"] * found, byte
        assert looked(None) == ["input 0"]
        assert looked([]) == []
    # The bytes beside the inputs are compared too.
    changed = image.clone()
    changed[0] ^= 1
    memory.write(INPUTS + BASE, changed)
    assert looked([[0, 1]]) == looked(None) == ["memory around the inputs"]
    # Another slot holds other inputs.
    memory.write(INPUTS + BASE, image * 0)
    memory.write(INPUTS, image)
    assert looked(look) == ["input 0"]


def test_inputs_that_cannot_be_read_count_as_overwritten(judge, memories):
    answer = sample(judge)
    assert timed(judge, "candidate", 0, 0, keep=False, look=None)["mutated"] == []
    os.truncate(memories["candidate"].fd, INPUTS + BASE + answer["size"] - 1)

    seen = timed(judge, "candidate", 0, 0, keep=False, look=None)
    assert seen["mutated"] == ["input 0", "memory around the inputs"]
    assert timed(judge, "eager", 0, 0, keep=False, look=None)["mutated"] == []


def test_inputs_that_cannot_be_written_are_reported(judge, memories):
    sample(judge)
    sealed = os.memfd_create("sealed", os.MFD_ALLOW_SEALING)
    os.ftruncate(sealed, SIZE)
    fcntl.fcntl(sealed, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    fields = {"runner": "candidate", "address": INPUTS}
    judge.role.ask("map", fields, fds=(sealed, *[memories["candidate"].maps] * 2))

    assert judge.ask("publish", sample="d", runner="candidate", base=0) == {"written": False}
    os.close(sealed)


def test_the_judge_writes_inputs_where_they_are_and_nowhere_else(judge, memories):
    memory = memories["candidate"]
    filled = torch.full((SIZE,), 7, dtype=torch.uint8)
    memory.write(0, filled)
    answer = sample(judge)
    there = os.pread(memory.fd, SIZE, 0)
    first, stop = INPUTS + BASE, INPUTS + BASE + answer["size"]

    assert set(there[:first]) == set(there[stop:]) == {7}
    assert there[first:stop] != bytes([7]) * answer["size"]


@pytest.mark.usefixtures("memories")
def test_every_output_of_a_runner_is_looked_at_for_its_place(judge):
    sample(judge)
    assert timed(judge, "candidate", FIRST, SECOND, keep=False)["misplaced"] == []
    first, second = INPUTS + BASE, SIZE - 16
    assert timed(judge, "candidate", first, SECOND, keep=False)["misplaced"] == [OutputMemory.INPUT]
    found = timed(judge, "candidate", FIRST, second, keep=False)["misplaced"]
    assert found == [OutputMemory.UNMAPPED]


def test_memory_of_inputs_begins_and_ends_at_the_byte():
    memory, image = Memory(), mmap.mmap(-1, 4096)
    inputs = HostMemory(os.dup(memory.fd), INPUTS, os.dup(memory.maps), os.dup(memory.maps))
    assert not inputs.overlaps_inputs((INPUTS, INPUTS + 1))
    assert inputs.write_inputs(64, image, 4000)
    inputs.write_inputs(0, image, 100)

    assert not inputs.overlaps_inputs((INPUTS - 8, INPUTS))
    assert inputs.overlaps_inputs((INPUTS - 8, INPUTS + 1))
    assert inputs.overlaps_inputs((INPUTS + 4063, INPUTS + 5000))
    assert not inputs.overlaps_inputs((INPUTS + 4064, INPUTS + 5000))
    inputs.close()
    os.close(memory.fd)
    os.close(memory.maps)


def test_a_tensor_is_read_whole_or_not_at_all():
    memory, value = Memory(), torch.arange(100.0)
    memory.write(SECOND, value)

    for like in (value, value.double()[:50], torch.empty(0), torch.empty(3, 0, 5)):
        read = read_tensor(memory.fd, SECOND, like)
        assert read is not None
        assert (read.shape, read.dtype) == (like.shape, like.dtype)
    again = read_tensor(memory.fd, SECOND, value)
    assert again is not None
    assert torch.equal(again, value)
    assert read_tensor(memory.fd, SIZE - 396, value) is None
    assert read_tensor(memory.fd, SIZE - 400, value) is not None
    os.close(memory.fd)
    os.close(memory.maps)
    assert read_tensor(memory.fd, SECOND, value) is None
