"""Where outputs may lie: in private memory of the runner that nothing else of a caller overlaps."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from itertools import combinations, product

import torch

from tilewright.evaluator.judge.memory_reader import Memory, RunnerState, Span
from tilewright.evaluator.judge.number_formats import byte_size
from tilewright.evaluator.judge.output_placement import OutputPlacement
from tilewright.wire.names import OutputMemory
from tilewright.wire.tensors import permuted_strides

OVERWRITTEN_BYTES = 256 << 10
"""Outputs up to this size are overwritten whole, larger ones in `WINDOWS` of `WINDOW_BYTES`."""
PAGE = 4096
"""Random bytes that are made for one output; it is overwritten with repetitions of them."""
WINDOWS, WINDOW_BYTES = 64, 512
"""Byte ranges of a larger output, and the length of each."""


def spans_of(addresses: Sequence[int], sizes: Sequence[int]) -> dict[int, Span]:
    """Return where the outputs lie that have memory, by their places."""
    return {
        place: (address, address + size)
        for place, (address, size) in enumerate(zip(addresses, sizes, strict=False))
        if address and size
    }


def note_outputs(
    runner: RunnerState,
    expected: Sequence[torch.Tensor],
    addresses: list[int],
    permuted: Sequence[int],
) -> None:
    """Note where a runner says its outputs lie, and which have the strides of the reference's.

    An output in the inputs is contiguous: it is compared with what lay there.
    """
    runner.last, runner.permuted = addresses, set()
    for place in permuted:
        span = addresses[place], addresses[place] + byte_size(expected[place])
        in_order = permuted_strides(expected[place]) is not None
        if in_order and not runner.memory.overlaps_inputs(span):
            runner.permuted.add(place)


def misplaced(
    runner: RunnerState, spans: Mapping[int, Span], placement: OutputPlacement
) -> set[OutputMemory]:
    """Return what the outputs of a call overlap that their caller needs unchanged, but for inputs.

    The reference may do the same: return one tensor at two places, or the same memory in every
    call. The last output byte is written, and a process on a CPU is stopped.
    """
    memory, found = runner.memory, set[OutputMemory]()
    for span in spans.values():
        found |= memory.foreign(span)
    if any(
        overlap(spans[one], spans[other])
        for one, other in combinations(sorted(spans), 2)
        if (one, other) not in placement.shares_outputs
    ):
        found.add(OutputMemory.OTHER_OUTPUT)
    own = [
        span
        for place, span in spans.items()
        if place not in placement.reuses_outputs and not memory.is_callers_copy(span)
    ]
    earlier = [span for held in runner.outputs.values() for span in held.values()]
    if any(overlap(*pair) for pair in product(own, earlier)):
        found.add(OutputMemory.EARLIER_OUTPUT)
    return found


def give_back(runner: RunnerState, calls: Sequence[int], placement: OutputPlacement) -> None:
    """Overwrite the outputs of calls that the caller, here the supervisor, holds no longer.

    Those that lie in inputs are overwritten by the inputs of another call. A candidate may keep
    what the reference keeps.
    """
    for call in calls:
        given = runner.outputs.pop(call, {})
        spans = [
            span
            for place, span in given.items()
            if place not in placement.reuses_outputs and not runner.memory.overlaps_inputs(span)
        ]
        overwrite(runner.memory, spans)


def overlap(one: Span, other: Span) -> bool:
    """Tell whether two ranges of addresses have a byte in common."""
    return one[0] < other[1] and other[0] < one[1]


def overwrite(memory: Memory, spans: list[Span]) -> None:
    """Write other bytes into outputs that their caller gives back, at places of its choice.

    Outputs belong to the caller. A candidate may use their memory again, but not their values.
    """
    data = os.urandom(PAGE)
    choices = random.Random(data)
    for start, stop in spans:
        if memory.fill((start, stop)):
            continue
        size = stop - start
        if size <= OVERWRITTEN_BYTES:
            memory.write(start, (data * (size // PAGE + 1))[:size])
            continue
        for _ in range(WINDOWS):
            place = start + int(choices.random() * (size - WINDOW_BYTES))
            memory.write(place, data[:WINDOW_BYTES])
