"""Where outputs may lie: in private memory of the runner that nothing else of a caller overlaps."""

from __future__ import annotations

import os
import random
from itertools import combinations, product

from tilewright.evaluator.judge.memory_reader import Memory, RunnerState, Span
from tilewright.evaluator.judge.reference import Reference
from tilewright.wire.names import OutputMemory

OVERWRITTEN_BYTES = 256 << 10
"""Outputs up to this size are overwritten whole, larger ones in `WINDOWS` of `WINDOW_BYTES`."""
PAGE = 4096
"""Random bytes that are made for one output; it is overwritten with repetitions of them."""
WINDOWS, WINDOW_BYTES = 64, 512
"""Byte ranges of a larger output, and the length of each."""


def misplaced(
    runner: RunnerState, spans: list[Span], reference: Reference, *, aliases: bool
) -> list[OutputMemory]:
    """Return what the outputs of a call overlap that their caller needs unchanged.

    The reference may do the same: return a view of an input (`aliases`), one tensor twice, or the
    same memory in every call. The last output byte is written, and a process on a CPU is stopped.
    """
    memory, found = runner.memory, set[OutputMemory]()
    for span in spans:
        found |= memory.foreign(span)
        if memory.overlaps_inputs(span) and not aliases:
            found.add(OutputMemory.INPUT)
    if not reference.placement.shares_outputs and any(
        overlap(*pair) for pair in combinations(spans, 2)
    ):
        found.add(OutputMemory.OTHER_OUTPUT)
    if not reference.placement.reuses_outputs:
        own = [span for span in spans if not memory.is_callers_copy(span)]
        earlier = [span for held in runner.outputs.values() for span in held]
        if any(overlap(*pair) for pair in product(own, earlier)):
            found.add(OutputMemory.EARLIER_OUTPUT)
    return sorted(found)


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
