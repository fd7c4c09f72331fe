"""Outputs of a runner: described, read from its memory, and kept until then."""

from __future__ import annotations

import gc
import itertools
import mmap
import os
import select
import sys
import threading
import time

import pytest
import torch

from tests.unit.runner.test_main import outputs, value
from tilewright.evaluator.judge.memory_map import MemoryMap
from tilewright.runner import calls, host_memory
from tilewright.wire.sync_page import GO, SHARES_CORE
from tilewright.wire.tensors import build

pytestmark = pytest.mark.usefixtures("runner_folder")


@pytest.mark.parametrize(
    ("returned", "structure", "count"),
    [
        ("x", "1", 1),
        ("(x, [x, x])", "3", 3),
        ("{'a': x, 'b': x}", "a,b", 2),
        ("[]", "", 0),
        ("[x] * 70", "70", 64),
    ],
)
def test_structures_are_described(runner, returned, structure, count):
    runner.load({"candidate.py": f"def work(x):\n    return {returned}\n"})
    described = outputs(runner.call(torch.ones(2)))

    assert len(described) == count
    assert not described or described[0]["structure"] == structure


@pytest.mark.parametrize(
    ("returned", "kind"),
    [
        ("'3'", "builtins.str"),
        ("3j", "builtins.complex"),
        ("Odd(x)", "candidate.Odd"),
        ("x.as_subclass(Mine)", "candidate.Mine"),
    ],
)
def test_foreign_types_are_named_and_have_no_address(runner, returned, kind):
    source = (
        "import torch\nclass Odd:\n    def __init__(self, x): pass\n"
        "class Mine(torch.Tensor): pass\n"
        f"def work(x):\n    return {returned}\n"
    )
    runner.load({"candidate.py": source})
    (item,) = outputs(runner.call(torch.ones(2)))

    assert item["type"] == kind
    assert item["address"] is None


@pytest.mark.parametrize(
    "returned",
    [
        "torch.empty(2, device='meta')",
        "torch.eye(2).to_sparse()",
        "torch.zeros(2).to(torch.float8_e5m2fnuz)",
    ],
)
def test_unreadable_outputs_are_described_without_an_address(runner, returned):
    runner.load({"candidate.py": f"import torch\ndef work(x):\n    return {returned}, x * 3\n"})
    frame = runner.call(torch.ones(2))
    first, _ = outputs(frame)

    assert first["type"] == "tensor"
    assert first["address"] is None
    assert value(runner, frame, torch.ones(2), 1).tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    "returned",
    [
        "torch.nn.Parameter(x.clone())",
        "x.clone().T",
        "x[::2, 1:]",
        "x[:1].expand(4, 3)",
        "(x + 1j * x).conj()",
        "(x[1:, :1] * 1j).conj().imag",
        "x[:0]",
        "x.repeat(400, 300)",
    ],
)
def test_lazy_and_strided_outputs_are_read_by_value(runner, returned):
    # Lazily conjugated, negated, expanded or strided: the judge sees bytes, densely.
    runner.load({"candidate.py": f"import torch\ndef work(x):\n    return {returned}\n"})
    x = torch.arange(6.0).reshape(2, 3)
    expected = eval(returned, {"torch": torch, "x": x})
    for make in (runner.call, runner.timed):
        frame = make(x)
        (item,) = outputs(frame)

        assert (item["type"], item["shape"]) == ("tensor", list(expected.shape))
        assert torch.equal(value(runner, frame, expected), expected)


@pytest.mark.parametrize(
    ("returned", "alias"),
    [("x", True), ("x[1:].T", True), ("[x + 0, x.T]", True), ("x + 0", False), ("3", False)],
)
def test_outputs_that_are_views_of_inputs_are_reported(runner, returned, alias):
    # Also those whose dense copy is no view any more.
    runner.load({"candidate.py": f"def work(x):\n    return {returned}\n"})
    described = outputs(runner.call(torch.ones(3, 3)))

    assert [item["alias"] for item in described] == [False] * (len(described) - 1) + [alias]


def test_a_timed_call_writes_the_sync_page_and_reports_output_addresses(runner):
    runner.load({"candidate.py": "def work(x):\n    return x * 2, '5', (x * 3).T\n"})
    x = torch.arange(6.0).reshape(2, 3)
    words = runner.page.flags
    for _ in range(2):
        frame = runner.timed(x)
        assert frame.kind == "result"
        places = list(words[host_memory.OUTPUTS : host_memory.OUTPUTS + 3])
        assert places == [item["address"] or 0 for item in outputs(frame)]
        assert torch.equal(runner.output(x, places[0]), x * 2)
        assert places[1] == 0
        assert torch.equal(runner.output(x.T, places[2]), x.T * 3)

    assert words[host_memory.READY] == words[host_memory.DONE] == 2
    assert gc.isenabled()


def test_a_call_reads_its_inputs_where_the_judge_writes_them(runner):
    runner.load({"candidate.py": "def work(x):\n    x += 1\n    return x\n"})
    x = torch.arange(4.0)
    fields = runner.fields(x)
    (item,) = outputs(runner.timed(x))

    assert item["address"] == runner.base + fields["args"]["v"][0]["offset"]
    assert torch.equal(build(fields["args"], runner.inputs, 0)[0], x + 1)


def test_inputs_lie_in_private_memory_of_no_file(runner):
    own_map = MemoryMap(os.dup(runner.maps))
    assert own_map.kinds(runner.base, runner.base + 4096) == set()
    own_map.close()


def test_inputs_written_before_the_release_are_those_of_the_call(runner):
    runner.load({"candidate.py": "def work(x):\n    return x * 2\n"})
    fields = runner.fields(torch.zeros(3))
    fields |= {"sequence": 1, "wait_s": 10.0, "held": []}
    runner.role.channel.send("arm", fields)
    while runner.page.flags[host_memory.READY] != 1:
        time.sleep(0.001)
    build(fields["args"], runner.inputs, 0)[0].fill_(7.0)
    runner.page.flags[host_memory.GO] = 1
    assert runner.page.let_go_on()
    frame = runner.role.receive()

    assert value(runner, frame, torch.zeros(3)).tolist() == [14.0] * 3


def test_a_runner_sleeps_after_a_call_until_it_may_go_on(runner):
    runner.load({"candidate.py": "def work(x):\n    return x * 2\n"})
    fields = runner.fields(torch.zeros(3))
    runner.role.channel.send("arm", {**fields, "sequence": 1, "wait_s": 10.0, "held": []})
    runner.page.flags[host_memory.GO] = 1
    while runner.page.flags[host_memory.DONE] != 1:
        time.sleep(0.001)

    assert not select.select([runner.role.channel], [], [], 0.1)[0]
    assert runner.page.let_go_on()
    assert runner.role.receive().kind == "result"


RING = """
import torch

ring = [torch.zeros(4) for _ in range({length})]
calls = 0

def work(x):
    global calls
    calls += 1
    return torch.add(x, 1, out=ring[calls % len(ring)])
"""


@pytest.mark.parametrize("length", [1, 2, 3])
def test_an_output_over_one_that_is_held_is_copied(runner, length):
    runner.load({"candidate.py": RING.replace("{length}", str(length))})
    where, seen = [], []
    for number in range(1, 7):
        frame = runner.timed(torch.full((4,), float(number)), held=tuple(range(1, number)))
        (address,) = (item["address"] for item in outputs(frame))
        where.append(address)
        seen.append(value(runner, frame, torch.zeros(4)))

    assert [item.tolist() for item in seen] == [[number + 1.0] * 4 for number in range(1, 7)]
    spans = [(address, address + 16) for address in where]
    assert all(a[1] <= b[0] or b[1] <= a[0] for a, b in itertools.combinations(spans, 2))


def test_memory_that_the_caller_gave_back_is_used_again(runner):
    runner.load({"candidate.py": RING.replace("{length}", "1")})
    where = [outputs(runner.timed(torch.zeros(4)))[0]["address"] for _ in range(3)]

    assert len(set(where)) == 1


def test_deliver_copies_what_overlaps_a_held_output_and_nothing_else():
    memory = torch.arange(12.0)
    start = memory.data_ptr()
    for place, copied in ((0, False), (3, False), (4, True), (7, True), (8, False)):
        output = memory[place : place + 1]
        ((leaf,), _) = calls.deliver(output, [(start + 16, start + 32)])
        assert (leaf.data_ptr() != output.data_ptr()) is copied
        assert torch.equal(leaf, output)
    ((leaf,), _) = calls.deliver(memory, [(start + 44, start + 60)])
    assert leaf.data_ptr() != start
    ((leaf,), _) = calls.deliver(memory)
    assert leaf.data_ptr() == start
    assert calls.spans([memory, torch.empty(0), "no tensor"]) == [(start, start + 48)]


def test_outputs_are_kept_until_the_next_timed_call(runner):
    # An array is told of its end; the memory of a tensor is not.
    source = """
import weakref
import numpy
import torch

last = lambda: None

def work(x):
    global last
    there = last() is not None
    array = numpy.full(2, 7.0, numpy.float32)
    last = weakref.ref(array)
    return torch.from_numpy(array), torch.tensor(there)
"""
    runner.load({"candidate.py": source})
    x, flag = torch.zeros(2), torch.tensor(True)
    for make in (runner.call, runner.timed, runner.timed):
        frame = make(x)
        gc.collect()

        assert sys.modules["candidate"].last() is not None
        assert value(runner, frame, x).tolist() == [7.0, 7.0]
        assert not value(runner, frame, flag, 1)


def test_a_runner_without_a_core_of_its_own_sleeps_until_it_is_released():
    page = memoryview(bytearray(4096)).cast("Q")
    page[SHARES_CORE] = 1
    release = threading.Timer(0.4, lambda: page.__setitem__(GO, 7))
    release.start()
    used_s = time.thread_time()
    host_memory.await_release(page, 7, 20.0)
    assert time.thread_time() - used_s < 0.2
    release.join()


def test_a_module_keeps_a_copy_of_its_init_inputs_and_not_of_the_whole_arena():
    memory = host_memory.HostCallMemory()
    memory.arena = arena = mmap.mmap(-1, 1 << 20)
    arena.write(b"kept!" + bytes(100))
    private = memory.private_copy(5)
    arena[:5] = b"other"

    assert (len(private), bytes(private)) == (5, b"kept!")
    assert len(memory.private_copy(0)) == 1
