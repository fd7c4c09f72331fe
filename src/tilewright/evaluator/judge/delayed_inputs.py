"""Windows of the inputs that a runner gets only when it is ready, while it is stopped.

A runner copies the inputs of a timed call into memory of its own before it is released. A
candidate that computed meanwhile would have no work left in the timed call. So the judge writes
the true values of some secret windows only after the copy; an earlier result is then wrong.
"""

from __future__ import annotations

import mmap
import random
from collections.abc import Iterator

from tilewright.evaluator.judge.inputs import InputSample
from tilewright.evaluator.judge.memory_reader import Memory
from tilewright.wire.tensors import Arena

WINDOWS, WINDOW_BYTES = 16, 512
GRAIN = 16
"""Windows begin at a multiple of the largest element."""


def _windows(sample: InputSample, seed: int) -> Iterator[tuple[int, int, int]]:
    """Yield start, length, and the place in the same tensor of the values written there first."""
    choices = random.Random(seed)
    spans = [(start, stop) for start, stop, _ in sample.names if stop > start]
    if not spans:
        return
    sizes = [stop - start for start, stop in spans]
    for start, stop in choices.choices(spans, sizes, k=WINDOWS):
        length = min(WINDOW_BYTES, (stop - start) // 2 // GRAIN * GRAIN)
        last = (stop - start - length) // GRAIN
        places = (start + GRAIN * choices.randint(0, last) for _ in range(2))
        yield next(places), length, next(places)


def hide(sample: InputSample, arena: Arena, base: int, seed: int) -> None:
    """Write other values into the windows of a slot."""
    into, image = _host(arena), _host(sample.image)
    for start, length, source in _windows(sample, seed):
        into[base + start : base + start + length] = image[source : source + length]


def write_delayed(sample: InputSample, arena: Arena, memory: Memory, base: int, seed: int) -> bool:
    """Write the true values there and into the runner's copy; tell whether that worked."""
    into, image = _host(arena), _host(sample.image)
    for start, length, _ in _windows(sample, seed):
        into[base + start : base + start + length] = image[start : start + length]
        if not memory.write(base + start, image[start : start + length]):
            return False
    return True


def _host(arena: Arena) -> mmap.mmap:
    if not isinstance(arena, mmap.mmap):
        raise TypeError("inputs on a device are written behind a gate")
    return arena
