"""Outputs that are those of an earlier call, where the reference draws random numbers.

A candidate may draw other numbers than the reference, and then its values prove nothing. But code
that computes at all has other outputs where the reference has: two calls with the same bits are
one result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import torch

from tilewright.evaluator.judge.inputs import InputSample
from tilewright.evaluator.judge_client.messages import CallAnswer

MIN_DIFFERENT = 64
"""Elements that must differ between the expected outputs of both calls. A candidate that draws
would have to leave as many as they are, each of which it changes by at least an even chance."""
MAX_ELEMENTS = 1 << 16
"""Elements of an expected output that are kept for that, at equal distances."""
MAX_BYTES = 256 << 20
"""Outputs of a call that are larger are not looked at: a digest reads 1 GB in a second."""


class EarlierOutputs:
    """Knows the outputs of a candidate's calls by digest. Lifetime: an evaluation."""

    def __init__(self) -> None:
        self._expected: dict[bytes, list[torch.Tensor]] = {}

    def marked(
        self, answer: CallAnswer, sample: InputSample, outputs: Sequence[torch.Tensor | None]
    ) -> CallAnswer:
        """Return the answer for a call, with the note whether its outputs are an earlier call's.

        Those of right calls are known afterwards, too. `outputs` have the shapes of the sample's
        values.
        """
        found = [output for output in outputs if output is not None]
        if not sample.random or len(found) < len(outputs):
            return answer
        if sum(output.nbytes for output in found) > MAX_BYTES:
            return answer
        expected = [_some(value) for value in sample.values()]
        earlier = self._expected.setdefault(_digest(found), expected)
        return replace(answer, repeated=bool(answer.wrong) and _differ(earlier, expected))


def _differ(values: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    pairs = zip(values, others, strict=True)
    return sum(int((one != other).any(-1).sum()) for one, other in pairs) >= MIN_DIFFERENT


def _digest(outputs: Sequence[torch.Tensor]) -> bytes:
    made = hashlib.blake2b(digest_size=16)
    for output in outputs:
        made.update(repr((output.shape, output.dtype)).encode())
        made.update(_bytes(output).cpu().numpy().data)
    return made.digest()


def _some(value: torch.Tensor) -> torch.Tensor:
    """Return the bytes of some elements, on the CPU."""
    found = _bytes(value)
    return found[:: len(found) // MAX_ELEMENTS + 1].cpu().clone()


def _bytes(value: torch.Tensor) -> torch.Tensor:
    """Return the bytes of each element, in a row each."""
    flat = value.contiguous().reshape(-1).view(torch.uint8)
    return flat.reshape(-1, value.element_size())
