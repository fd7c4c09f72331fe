"""The reference's error on nominal inputs, which bounds what a variation may ask for.

On small integers and on powers of two the reference may make no error at all. Another algorithm of
the same precision, such as Winograd's convolution, makes one there as everywhere. So on a variation
the reference's error counts as at least that on nominal inputs, as a share of the output's RMS.

A variation may also turn a softmax into a one-hot one. Its gradient is then zero in the reference,
and a rounding of float32 in a kernel that subtracts two sums. So each element of a 16-bit output
may be off by a small share of the output's RMS (ADR 71). If nominal inputs make such small elements
too, they are part of the problem, and may not be left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from tilewright.evaluator.judge.comparison import Expected, chunks
from tilewright.evaluator.judge.number_formats import parts

SHORT = (torch.float16, torch.bfloat16)
SHORT_NOISE = 2.0**-16
"""Share of the RMS of a 16-bit output by which its elements may be off on a variation. It is 1/128
of one rounding of bfloat16, and 128 roundings of float32."""
MAX_SMALL = 1 / 64
"""Share of the elements that may be that small on nominal inputs. In a causal attention the first
query has no gradient. Work that is left out for a 64th of the elements gains less than is measured.
"""


class NominalErrors:
    """The largest error of each output on nominal inputs. Lifetime: the judge of a problem."""

    def __init__(self) -> None:
        self._shares: dict[int, float] = {}
        self._small: dict[int, float] = {}
        """The largest share of small elements of each 16-bit output."""

    def note(self, expected: Sequence[Expected]) -> None:
        """Record the errors on nominal inputs, as shares of the RMS of each output."""
        for place, item in enumerate(expected):
            size = _rms(item)
            if item.oracle is not None and size > 0.0:
                share = item.reference_error / size
                self._shares[place] = max(share, self._shares.get(place, 0.0))
            if item.oracle is not None and item.value.dtype in SHORT:
                small = _small_share(item.oracle, SHORT_NOISE * size)
                self._small[place] = max(small, self._small.get(place, 0.0))

    def floored(self, expected: Sequence[Expected]) -> list[Expected]:
        """Return what is expected on a variation, with at least these errors."""
        found = []
        for place, item in enumerate(expected):
            share = self._shares.get(place, 0.0)
            noise = SHORT_NOISE if self._small.get(place, 1.0) <= MAX_SMALL else 0.0
            if item.oracle is None or share == noise == 0.0:
                found.append(item)
                continue
            size = _rms(item)
            error, least = max(item.reference_error, share * size), max(item.noise, noise * size)
            found.append(replace(item, reference_error=error, noise=least))
        return found


def _small_share(value: torch.Tensor, limit: float) -> float:
    """Return the share of the elements that are no larger than a limit."""
    small = sum(int((part.abs() <= limit).sum()) for part in chunks(value))
    return small / max(value.numel(), 1)


def _rms(item: Expected) -> float:
    """Return the RMS of the finite elements of an output."""
    if item.oracle is None or item.value.numel() == 0:
        return 0.0
    squares = count = 0.0
    for part in chunks(parts(item.oracle)):
        finite = part[part.isfinite()].double()
        squares, count = squares + float(finite.square().sum()), count + finite.numel()
    return math.sqrt(squares / count) if count else 0.0
