"""Inputs that a runner has overwritten."""

from __future__ import annotations

import torch

from tilewright.evaluator.judge.inputs import InputSample, Windows
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
    if all(same_bytes(arena, base, sample.image, *window) for window in windows):
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


def _device(arena: Arena) -> str:
    return "cuda" if isinstance(arena, Block) else "cpu"


def same_bytes(arena: Arena, base: int, image: Arena, start: int, stop: int) -> bool:
    """Compare bytes, eight at a time: memoryview compares them one by one."""
    eights, rest = divmod(stop - start, 8)
    parts = [(torch.int64, eights, start)] + [(torch.uint8, rest, stop - rest)] * bool(rest)
    return all(
        torch.equal(elements(arena, kind, count, base + first), elements(image, kind, count, first))
        for kind, count, first in parts
        if count
    )
