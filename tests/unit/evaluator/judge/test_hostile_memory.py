"""The judge reads each runner's own memory at the reported address, or nothing.

The memory of a runner is a file here, so that an address is an offset in that file only.
`python -m benchmarks --only planted_bugs` plants bugs that these tests must find.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.judge_role import JudgeRole
from tilewright.evaluator.judge.memory_reader import differs, is_private, read_tensor

TWO_OUTPUTS = """import torch


def inputs(case, generator):
    return (torch.randn(case["n"], 4, generator=generator),)


def reference(x):
    return x * 3, x.sum(-1)
"""
INPUT_COPY, SIZE, FIRST, SECOND = 1 << 14, 1 << 17, 1 << 16, (1 << 16) + 4099
"""Addresses in a runner's memory; that of the second output is odd within its page."""
BASE = 8192


def mapped(*lines: str) -> int:
    """Return a descriptor of what `/proc/PID/maps` would say."""
    fd = os.memfd_create("maps")
    os.write(fd, "".join(f"{line}\n" for line in lines).encode())
    return fd


class Memory:
    """The memory of one side: a file of zeros, into which a test writes."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("runner")
        os.ftruncate(self.fd, SIZE)
        self.maps = mapped(f"0-{SIZE:x} rw-p 00000000 00:00 0")

    def write(self, place: int, value: torch.Tensor) -> None:
        data = value.contiguous().numpy().tobytes()
        os.pwrite(self.fd, data[: max(SIZE - place, 0)], place)


@pytest.fixture
def memories(judge: JudgeRole) -> Iterator[dict[str, Memory]]:
    """The memories of baseline and candidate, for a problem of two outputs."""
    judge.load(TWO_OUTPUTS)
    made = {name: Memory() for name in ("eager", "candidate")}
    for name, memory in made.items():
        fields = {"runner": name, "input_copy": INPUT_COPY, **judge.arenas.fields}
        judge.role.ask("map", fields, fds=(*judge.arenas.fds, memory.fd, memory.maps))
    yield made
    for memory in made.values():
        os.close(memory.fd)
        os.close(memory.maps)


def sample(judge: JudgeRole) -> tuple[dict[str, Any], torch.Tensor]:
    """Draw and publish at `BASE`; return the draw and its only input."""
    fields = {"params": {"n": 64}, "variation": "nominal", "seed": 3, "forward_seed": 1}
    answer = judge.ask("sample", sample="d", timed=False, **fields)
    return answer, judge.inputs(answer, BASE)[0].clone()


def checked(judge: JudgeRole, runner: str, x: torch.Tensor, *places: int) -> dict[str, Any]:
    """Have outputs judged that a runner reports at `places`."""
    described = judge.put(x * 3, x.sum(-1))
    for item, place in zip(described, places, strict=True):
        item["address"] = place
    return judge.ask("check", sample="d", runner=runner, base=BASE, outputs=described)


def timed(judge: JudgeRole, runner: str, *places: int, **changes: Any) -> dict[str, Any]:
    return judge.timed(runner, base=BASE, addresses=list(places), **changes)


def test_each_output_is_read_at_its_runners_reported_address(judge, memories):
    _, x = sample(judge)
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
    _, x = sample(judge)
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
    _, x = sample(judge)
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


def test_every_window_of_timed_inputs_is_checked(judge, memories):
    answer, _ = sample(judge)
    size, memory = answer["size"], memories["candidate"]
    image = torch.frombuffer(bytearray(judge.area.inputs[BASE : BASE + size]), dtype=torch.uint8)
    look = [[0, 64], [320, 448]]

    def looked() -> list[str]:
        found = timed(judge, "candidate", 0, 0, keep=False, look=look)["mutated"]
        return list(found)

    memory.write(INPUT_COPY + BASE, image)
    assert looked() == []
    for byte, found in ((0, 1), (63, 1), (64, 0), (319, 0), (320, 1), (447, 1), (448, 0)):
        changed = image.clone()
        changed[byte] ^= 1
        memory.write(INPUT_COPY + BASE, changed)
        assert looked() == ["the inputs of a timed call"] * found, byte
    # Another slot of the input copy holds other inputs.
    memory.write(INPUT_COPY + BASE, image * 0)
    memory.write(INPUT_COPY, image)
    assert looked() == ["the inputs of a timed call"]


def test_unreadable_input_memory_counts_as_overwritten():
    memory, image = Memory(), mmap.mmap(-1, 4096)

    assert not differs(memory.fd, 0, image, [[0, 64]])
    assert differs(memory.fd, SIZE - 32, image, [[0, 64]])
    assert differs(memory.fd, 1 << 40, image, [[64, 128]])
    os.close(memory.fd)
    os.close(memory.maps)


@pytest.mark.parametrize(
    ("lines", "private"),
    [
        (["1000-9000 rw-p 00000000 00:00 0"], True),
        (["1000-3000 rw-p 00000000 00:00 0", "3000-9000 rw-p 00000000 00:00 0 [anon: a]"], True),
        (["1000-9000 rw-s 00000000 00:01 7 /memfd:inputs (deleted)"], False),
        (["1000-9000 rw-p 00000000 00:01 7 /memfd:inputs (deleted)"], False),
        (["1000-3000 rw-p 00000000 00:00 0", "4000-9000 rw-p 00000000 00:00 0"], False),
        (["1000-3000 rw-p 00000000 00:00 0"], False),
        (["0-1000 rw-s 00000000 00:01 7 /memfd:a\rb", "1000-9000 rw-p 00000000 00:00 0"], True),
        (["0-2000 rw-s 00000000 00:01 7 x", "2000-4000 rw-p 00000000 00:00 0"], True),
        ([], False),
    ],
)
def test_a_memory_range_is_private_when_all_of_it_is(lines, private):
    fd = mapped(*lines)
    assert [is_private(fd, 0x2000, 0x4000) for _ in range(2)] == [private] * 2
    os.close(fd)


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
