"""Where outputs may lie: in memory of their own that the caller can keep.

`python -m benchmarks --only planted_bugs` plants bugs that these tests must find.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any

import pytest
import torch

from tests.unit.evaluator.judge.test_process import FUNCTION
from tilewright.evaluator.judge import output_memory
from tilewright.evaluator.judge.memory_reader import HostMemory
from tilewright.wire.names import OutputMemory
from tilewright.wire.tensors import build

TWO = FUNCTION.replace("torch.relu(x + y)", "(x + y, x - y)")
SAME = FUNCTION.replace("return torch.relu(x + y)", "z = x + y\n    return z, z")
VIEW = FUNCTION.replace("torch.relu(x + y)", "x.view(-1)")
IN_PLACE = FUNCTION.replace("torch.relu(x + y)", "x.add_(y)")
BOTH = FUNCTION.replace("(8, gen", '(case["n"], 8, gen').replace("x + y", "x - y")
COPY = FUNCTION.replace("torch.relu(x + y)", "x.clone()")
KEPT = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.ones(4, 8))

    def forward(self, x):
        return self.table

def get_inputs():
    return [torch.rand(4, 8)]

def get_init_inputs():
    return []
"""


def opened(judge: Any, source: str = FUNCTION, kind: str = "function", **changes: Any) -> Any:
    """Load a problem, write a sample, and return the inputs in the runner's memory."""
    judge.load(source, kind, **changes)
    judge.map()
    return judge.inputs(judge.sample())


def seen(judge: Any, *addresses: int, **changes: Any) -> list[str]:
    """Return where outputs at these addresses lie, if not in memory of their own."""
    answer = judge.timed("candidate", addresses=list(addresses), keep=False, **changes)
    return list(answer["misplaced"])


def test_private_memory_is_no_finding(judge):
    opened(judge)
    output = torch.empty(4, 8)

    assert seen(judge, output.data_ptr()) == []
    assert seen(judge, 0) == []


@pytest.mark.parametrize("shift", [0, 4, -64, 64])
def test_an_output_over_an_input_is_found(judge, shift):
    x, y = opened(judge)

    assert seen(judge, x.data_ptr() + shift) == [OutputMemory.INPUT]
    assert seen(judge, y.data_ptr() + min(shift, 0)) == [OutputMemory.INPUT]


def test_memory_of_an_input_that_no_call_uses_now_is_memory_of_inputs(judge):
    judge.load(FUNCTION)
    judge.map()
    sample = judge.sample()
    there = judge.inputs(sample, 1 << 16)[0].data_ptr()
    judge.inputs(sample, 0)

    assert seen(judge, there) == [OutputMemory.INPUT]


def test_a_view_of_an_input_is_allowed_where_the_reference_returns_one(judge):
    x, _ = opened(judge, VIEW)

    assert seen(judge, x.data_ptr()) == []


@pytest.mark.parametrize(
    ("source", "changes"), [(IN_PLACE, {}), (FUNCTION, {"writable_inputs": ["x"]})]
)
def test_a_view_of_a_writable_input_is_allowed_once_it_is_written(judge, source, changes):
    x, y = opened(judge, source, **changes)

    # To return it as it was is to do no work, and so is to return the input beside it.
    assert seen(judge, x.data_ptr()) == [OutputMemory.INPUT]
    x[-1, -1] += 1
    assert seen(judge, x.data_ptr()) == []
    assert seen(judge, y.data_ptr()) == [OutputMemory.INPUT]


def test_only_an_input_that_may_be_overwritten_can_be_an_output(judge):
    x, y = opened(judge, BOTH, writable_inputs=["y"])

    x[0, 0] += 1
    assert seen(judge, x.data_ptr()) == [OutputMemory.INPUT]
    y += 1
    assert seen(judge, y.data_ptr()) == []
    # It reaches into the memory between the inputs.
    assert seen(judge, y.data_ptr() + 4) == [OutputMemory.INPUT]


@pytest.mark.parametrize("timed", [False, True])
def test_an_input_that_was_right_before_the_call_is_no_result_of_work(judge, timed):
    judge.load(COPY, writable_inputs=["x"])
    judge.map()
    x, y = judge.inputs(judge.sample(timed=timed))
    how = {"expect": timed, "compare": timed}
    x[0, 0] *= 1 + 2**-22

    assert judge.timed("candidate", x, **how)["misplaced"] == [OutputMemory.INPUT]
    assert judge.timed("candidate", x.clone(), **how)["misplaced"] == []
    # The row is the result of work, wherever it lies.
    judge.load(COPY.replace("x.clone()", "torch.cat([x[:-1], y[None]])"), writable_inputs=["x"])
    judge.map()
    x, y = judge.inputs(judge.sample(timed=timed))
    x[-1] = y
    answer = judge.timed("candidate", x, **how)
    assert (answer["misplaced"], answer["wrong"]) == ([], "")


def test_work_in_place_that_changes_nothing_of_a_variation_is_allowed(judge):
    judge.load(COPY.replace("x.clone()", "torch.round(x)"), writable_inputs=["x"])
    judge.map()
    for variation in ("nominal", "small_integers"):
        x, _ = judge.inputs(judge.sample(variation))
        assert judge.check(x.round_())["misplaced"] == []


def test_a_view_of_another_input_than_the_references_is_found(judge):
    x, y = opened(judge, COPY.replace("x.clone()", "x, y.clone()").replace("8, gen", "32, gen", 2))

    assert seen(judge, x.data_ptr(), y.data_ptr()) == [OutputMemory.INPUT]
    assert seen(judge, x.data_ptr(), torch.empty(32).data_ptr()) == []


def test_a_gradient_may_be_that_of_the_output_where_the_references_is(judge):
    judge.load(FUNCTION.replace("torch.relu(x + y)", "x + y.sum()"), grads=["x"])
    judge.map()
    sample = judge.sample()
    judge.inputs(sample)
    (upstream,) = build(sample["grad_outputs"], judge.area.inputs, 0)

    assert sample["places"]["aliases"]
    assert seen(judge, torch.empty(4, 8).data_ptr(), upstream.data_ptr()) == []


def test_a_view_of_inputs_of_another_call_is_no_result_of_work_in_place(judge):
    judge.load(IN_PLACE)
    judge.map()
    sample = judge.sample()
    there = judge.inputs(sample, 1 << 16)[0]
    judge.inputs(sample, 0)
    there += 1

    assert seen(judge, there.data_ptr()) == [OutputMemory.INPUT]


@pytest.mark.parametrize(
    ("shared", "kind"), [(True, OutputMemory.SHARED), (False, OutputMemory.FILE)]
)
def test_mapped_memory_is_found(judge, shared, kind):
    opened(judge)
    fd = os.memfd_create("theirs")
    os.ftruncate(fd, 4096)
    flags = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
    there = mmap.mmap(fd, 4096, flags=flags)
    there[:] = bytes(4096)

    assert seen(judge, torch.frombuffer(there, dtype=torch.uint8).data_ptr()) == [kind]
    os.close(fd)


def test_an_address_without_memory_is_found(judge):
    opened(judge)

    assert seen(judge, 1 << 45) == [OutputMemory.UNMAPPED]


def test_outputs_must_not_overlap_each_other(judge):
    opened(judge, TWO)
    memory = torch.empty(3, 32)
    first = memory.data_ptr()

    assert seen(judge, first, first + 128) == []
    assert seen(judge, first, first + 124) == [OutputMemory.OTHER_OUTPUT]
    assert seen(judge, first, first) == [OutputMemory.OTHER_OUTPUT]


def test_halves_of_one_tensor_do_not_overlap(judge):
    opened(judge, SAME.replace("return z, z", "return torch.cat([z, z]).chunk(2)"))
    memory = torch.empty(2, 32)
    first, second = memory[0].data_ptr(), memory[1].data_ptr()

    assert seen(judge, first, second) == []
    assert seen(judge, first, first) == [OutputMemory.OTHER_OUTPUT]


def test_outputs_may_be_one_tensor_where_the_references_are(judge):
    opened(judge, SAME)
    memory = torch.empty(4, 8)

    assert seen(judge, memory.data_ptr(), memory.data_ptr()) == []


def test_an_output_must_not_lie_in_one_that_the_caller_holds(judge):
    opened(judge)
    memory = torch.empty(8, 32)
    places = [memory[i].data_ptr() for i in range(8)]
    # A ring of buffers is found however long it is, if the caller holds one of them.
    assert seen(judge, places[0], call=1) == []
    assert seen(judge, places[1], call=2, held=[1]) == []
    assert seen(judge, places[2], call=3, held=[1, 2]) == []
    assert seen(judge, places[0] + 4, call=4, held=[1, 3]) == [OutputMemory.EARLIER_OUTPUT]
    assert seen(judge, places[5], call=5, held=[1, 3, 4]) == []
    # What the caller gave back may be used again, and what a baseline returned is not ours.
    assert seen(judge, places[3], call=6, held=[3]) == []
    assert seen(judge, places[0], call=7, held=[3]) == []
    judge.map("eager")
    assert judge.timed("eager", addresses=[places[0]], keep=False, held=[7])["misplaced"] == []


def test_the_same_memory_is_allowed_where_the_reference_returns_its_own(judge):
    opened(judge, KEPT, "module")
    memory = torch.empty(4, 8)

    assert seen(judge, memory.data_ptr(), call=1) == []
    assert seen(judge, memory.data_ptr(), call=2, held=[1]) == []


def test_a_runner_cannot_report_more_outputs_than_there_are(judge):
    x, _ = opened(judge)
    output = torch.empty(4, 8)

    assert seen(judge, output.data_ptr(), x.data_ptr()) == []


def test_each_place_is_named_once(judge):
    x, _ = opened(judge, TWO)

    assert seen(judge, x.data_ptr(), x.data_ptr() + ctypes.sizeof(ctypes.c_float)) == [
        OutputMemory.INPUT,
        OutputMemory.OTHER_OUTPUT,
    ]


# Outputs that the caller gives back ---------------------------------------------------------------


def test_outputs_that_the_caller_gives_back_are_overwritten(judge):
    opened(judge)
    first, second, third = (torch.full((4, 8), 7.0) for _ in range(3))
    seen(judge, first.data_ptr(), call=1)
    seen(judge, second.data_ptr(), call=2, held=[1])
    seen(judge, third.data_ptr(), call=3, held=[1, 2], dropped=[1])

    assert not (first == 7.0).any()
    assert (second == 7.0).all()
    assert (third == 7.0).all()
    # They are known no longer, so that their memory may be used again.
    assert seen(judge, first.data_ptr(), call=4, held=[2, 3]) == []


def test_places_in_large_outputs_are_overwritten_in_secret():
    places = []
    for _ in range(2):
        output = torch.zeros(output_memory.OVERWRITTEN_BYTES + 4096, dtype=torch.uint8)
        own = (os.open(f"/proc/self/{name}", os.O_RDONLY) for name in ("maps", "pagemap"))
        memory = HostMemory(os.open("/proc/self/mem", os.O_RDWR), 0, *own)
        start = output.data_ptr()
        output_memory.overwrite(memory, [(start, start + len(output) - 4096)])
        assert float((output[:-4096] != 0).double().mean()) > 0.9
        output.zero_()
        output_memory.overwrite(memory, [(start, start + len(output))])
        changed = output.nonzero().flatten()
        limit = output_memory.WINDOWS * output_memory.WINDOW_BYTES
        assert limit / 2 < len(changed) <= limit
        assert changed.min() < len(output) / 4
        assert changed.max() > len(output) * 3 / 4
        places.append(changed)
        # What cannot be written is left as it is.
        output_memory.overwrite(memory, [(8, 16), (1 << 60, (1 << 60) + 8)])
        memory.close()
    assert not torch.equal(*[item[:1000] for item in places])


def test_memory_that_the_reference_keeps_too_is_not_overwritten(judge):
    opened(judge, KEPT, "module")
    output = torch.full((4, 8), 7.0)
    seen(judge, output.data_ptr(), call=1)
    seen(judge, output.data_ptr(), call=2, held=[1], dropped=[1])

    assert (output == 7.0).all()


def test_an_output_beside_one_that_the_reference_keeps_is_overwritten(judge):
    opened(judge, KEPT.replace("return self.table", "return self.table, x + 1"), "module")
    kept, own, other = (torch.full((4, 8), 7.0) for _ in range(3))
    kept_at = kept.data_ptr()
    assert seen(judge, kept_at, own.data_ptr(), call=1) == []
    held = {"call": 2, "held": [1]}
    assert seen(judge, kept_at, own.data_ptr(), **held) == [OutputMemory.EARLIER_OUTPUT]
    assert seen(judge, kept_at, other.data_ptr(), call=3, held=[1, 2], dropped=[1]) == []

    assert (kept == 7.0).all()
    assert not (own == 7.0).any()


@pytest.mark.parametrize(
    ("source", "changes"),
    [(VIEW, {}), (IN_PLACE, {}), (FUNCTION, {"writable_inputs": ["x"]})],
)
def test_outputs_of_a_problem_in_place_are_overwritten_but_its_inputs_are_not(
    judge, source, changes
):
    x, _ = opened(judge, source, **changes)
    output = torch.full((4, 8), 7.0)
    seen(judge, output.data_ptr(), call=1)
    x += 1
    now = x.clone()
    seen(judge, x.data_ptr(), call=2, held=[1])
    seen(judge, 0, call=3, held=[1, 2], dropped=[1, 2])

    assert not (output == 7.0).any()
    assert torch.equal(x, now)
