"""Inputs that a runner has overwritten."""

from __future__ import annotations

import torch

from tilewright.evaluator.judge.inputs import InputSample, Windows
from tilewright.evaluator.judge.memory_reader import Memory, Span
from tilewright.wire.cuda_driver import Block
from tilewright.wire.tensors import Arena, elements


def overwritten(
    sample: InputSample, arena: Arena, base: int, donated: set[int], look: Windows = None
) -> list[str]:
    """Return what in the arena differs from the master: argument names, or the space between.

    Every implementation may overwrite the arguments that the reference itself overwrites.
    `look` restricts the comparison to some byte ranges; `None`: all bytes.
    """
    windows = [[0, sample.size]] if look is None else look
    if all(_same_bytes(arena, base, sample.image, *window) for window in windows):
        return []
    different = torch.zeros(sample.size, dtype=torch.bool, device=_device(arena))
    for start, stop in windows:
        there = elements(arena, torch.uint8, stop - start, base + start)
        different[start:stop] = there != elements(sample.image, torch.uint8, stop - start, start)
    found, covered = [], torch.zeros_like(different)
    for start, stop, index in sample.names:
        covered[start:stop] = True
        if index not in donated | sample.after.overwrites and bool(different[start:stop].any()):
            found.append(f"input {index}")
    if bool((different & ~covered).any()):
        found.append("memory around the inputs")
    return found


def is_untouched(sample: InputSample, memory: Memory, base: int, span: Span) -> bool:
    """Tell whether an output over the inputs at `base` holds nothing but what they held before.

    A kernel that works in place returns an input that it has changed. To return another one is to
    do no work. An output that reaches beyond these inputs is not the result of such a kernel.
    """
    offset = memory.input_offset(span[0])
    if offset is None or not memory.overlaps_inputs(span):
        return False
    start, stop = offset - base, offset - base + span[1] - span[0]
    if start < 0 or stop > sample.size:
        return True
    arena, first = memory.inputs(base, sample.size, [[start, stop]])
    return _same_bytes(arena, first, sample.image, start, stop)


def _device(arena: Arena) -> str:
    return "cuda" if isinstance(arena, Block) else "cpu"


def _same_bytes(arena: Arena, base: int, image: Arena, start: int, stop: int) -> bool:
    """Compare bytes, eight at a time: memoryview compares them one by one."""
    eights, rest = divmod(stop - start, 8)
    parts = [(torch.int64, eights, start)] + [(torch.uint8, rest, stop - rest)] * bool(rest)
    return all(
        torch.equal(elements(arena, kind, count, base + first), elements(image, kind, count, first))
        for kind, count, first in parts
        if count
    )
