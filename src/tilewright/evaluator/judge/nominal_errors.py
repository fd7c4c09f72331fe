"""The reference's error on nominal inputs, which bounds what a variation may ask for.

On small integers and on powers of two the reference may make no error at all. Another algorithm of
the same precision, such as Winograd's convolution, makes one there as everywhere. So on a variation
the reference's error counts as at least that on nominal inputs, as a share of the output's RMS.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tilewright.evaluator.judge.comparison import Expected, chunks
from tilewright.evaluator.judge.number_formats import parts


class NominalErrors:
    """The largest error of each output on nominal inputs. Lifetime: the judge of a problem."""

    def __init__(self) -> None:
        self._shares: dict[int, float] = {}

    def note(self, expected: Sequence[Expected]) -> None:
        """Record the errors on nominal inputs, as shares of the RMS of each output."""
        for place, item in enumerate(expected):
            size = _rms(item)
            if item.oracle is not None and size > 0.0:
                share = item.reference_error / size
                self._shares[place] = max(share, self._shares.get(place, 0.0))

    def floored(self, expected: Sequence[Expected]) -> list[Expected]:
        """Return what is expected on a variation, with at least these errors."""
        found = []
        for place, item in enumerate(expected):
            share = self._shares.get(place, 0.0)
            if item.oracle is None or share == 0.0:
                found.append(item)
                continue
            least = share * _rms(item)
            found.append(replace(item, reference_error=max(item.reference_error, least)))
        return found


def _rms(item: Expected) -> float:
    """Return the RMS of the finite elements of an output."""
    if item.oracle is None or item.value.numel() == 0:
        return 0.0
    squares = count = 0.0
    for part in chunks(parts(item.oracle)):
        finite = part[part.isfinite()].double()
        squares, count = squares + float(finite.square().sum()), count + finite.numel()
    return math.sqrt(squares / count) if count else 0.0
