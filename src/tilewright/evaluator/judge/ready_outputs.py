"""Outputs that lay in a runner's device memory before the call that returns them.

Some of an output may not depend on inputs, such as the zeros of a triangular matrix. A candidate
can write them in another call, or on another stream while its call waits for the launch gate. The
judge owns the memory in which outputs lie. It reads secret places of that memory before and after
a call, and counts those in outputs that held their values before.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

import torch

from tilewright.evaluator.judge.memory_reader import Span
from tilewright.wire.cuda_driver import Block

SECTOR_BYTES = 32
"""Bytes of a place: device memory is written in units of this size."""
WORDS = SECTOR_BYTES // 8
PLACES = 1 << 16
"""Places that are read in each call. The read takes about 10 us, before the flush of the cache."""
MIN_PLACES = 32
"""Places within an output from which on their share says something."""
MIN_SHARE = 0.05
"""Share of an output's places. Memory that was used before agrees in few places by chance."""
GIVEN_BACK = -1
"""Eight bytes of the value that the judge writes over outputs that are given back."""


class ReadyOutputs:
    """Secret places of a runner's memory, before and after a call. Lifetime: the judge.

    Memory is given as rows of one place each, as `places_of` returns them. All own memory is
    allocated at once: behind a closed gate the allocator would wait for the device. So would the
    first launch of a kernel, which loads its code; `load_kernels` makes it before.
    """

    def __init__(self, device: torch.device) -> None:
        # The runner knows the seed of the default generator: it is that of the call.
        self._generator = torch.Generator(device).manual_seed(secrets.randbits(63))
        self._places = torch.zeros(PLACES, dtype=torch.int64, device=device)
        self._before, self._after = (
            torch.zeros(PLACES, WORDS, dtype=torch.int64, device=device) for _ in range(2)
        )

    def load_kernels(self, memory: torch.Tensor) -> None:
        """Launch the kernels of both reads, whose code depends on the size of the memory."""
        self.read_before(memory)
        self.read_after(memory)
        torch.cuda.synchronize()

    def read_before(self, memory: torch.Tensor) -> None:
        """Queue the choice of places and a copy of what lies there."""
        self._places.random_(0, len(memory), generator=self._generator)
        torch.index_select(memory, 0, self._places, out=self._before)

    def read_after(self, memory: torch.Tensor) -> None:
        """Queue another copy of what lies in the same places."""
        torch.index_select(memory, 0, self._places, out=self._after)

    def ready_bytes(self, outputs: Iterable[Span]) -> int:
        """Return the bytes of outputs that had their values before; spans are offsets."""
        first = self._places * SECTOR_BYTES
        same = (self._before == self._after).all(1) & (self._after != GIVEN_BACK).any(1)
        found = 0
        for start, stop in outputs:
            inside = (first >= start) & (first + SECTOR_BYTES <= stop)
            count = int(inside.sum())
            share = int((inside & same).sum()) / max(count, 1)
            if count >= MIN_PLACES and share > MIN_SHARE:
                found += int(share * (stop - start))
        return found


def places_of(block: Block) -> torch.Tensor:
    """Return the memory of a block as rows of one place each."""
    return block.elements(torch.int64, len(block) // SECTOR_BYTES * WORDS, 0).view(-1, WORDS)
