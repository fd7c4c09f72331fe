"""Parts of an output that no input changes, such as the zeros of a one-hot matrix.

An implementation can write them before a call whose inputs it does not know yet. On a CPU the time
between two calls is the runner's own, and a part of it may be such work (ADR 77).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

SECTOR_BYTES = 32
"""Bytes that are compared as one place, as on a GPU (`ready_outputs`). Zeros at random places, as
after a rectifier, do not agree in a whole place."""
PLACES = 4096
"""Places of an output that are compared with those of the call before, at most."""
MIN_SHARE = 0.05
"""Share of an output's places that must be unchanged: few agree by chance."""


class UnchangedOutputs:
    """Compares the expected outputs of a timed call with those of the call before it.

    Lifetime: the judge of a problem.
    """

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, torch.Tensor]] = {}
        """For each place among the outputs, the size of the last one and its sectors."""

    def unchanged_bytes(self, outputs: Sequence[torch.Tensor | None]) -> int | None:
        """Return how many bytes are as in the call before; `None` if none of its size is known."""
        found: int | None = None
        for place, output in enumerate(outputs):
            if output is None or output.nbytes < SECTOR_BYTES:
                continue
            sectors = _sectors(output)
            size, before = self._last.get(place, (0, sectors))
            self._last[place] = output.nbytes, sectors
            if size != output.nbytes:
                continue
            share = float((before == sectors).all(1).double().mean())
            found = (found or 0) + (int(share * output.nbytes) if share > MIN_SHARE else 0)
        return found


def _sectors(output: torch.Tensor) -> torch.Tensor:
    """Return the same places of every output of one size, chosen at random."""
    count = output.nbytes // SECTOR_BYTES
    octets = output.contiguous().reshape(-1).view(torch.uint8)
    rows = octets[: count * SECTOR_BYTES].view(count, SECTOR_BYTES)
    generator = torch.Generator(output.device).manual_seed(count)
    places = torch.randint(count, (min(PLACES, count),), generator=generator, device=output.device)
    return rows[places]
