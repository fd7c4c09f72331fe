"""Outputs in the memory of inputs: the result of work in place, or an input passed off as one.

A kernel that works in place writes the input that it returns. To return an input that was right
before the call is to do no work, whatever bits of it were changed. So the judge looks at the values
that the input had then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch

from tilewright.evaluator.judge.comparison import compare
from tilewright.evaluator.judge.inputs import InputSample
from tilewright.evaluator.judge.memory_reader import Memory, Span
from tilewright.evaluator.judge.output_placement import OutputPlacement
from tilewright.evaluator.judge.overwritten_inputs import same_bytes
from tilewright.wire.tensors import elements

USUAL = ("nominal", "uneven_parts")
"""Variations whose inputs work in place changes. On others it may change nothing: one that rounds
meets integers, and one that clears negative elements meets none."""
MIN_BYTES = 64
"""Smaller outputs may be right by chance, and to copy one takes no time."""


class OutputsInInputs:
    """The outputs of one call that lie in the memory of inputs.

    Where the reference returns an input as it was, a candidate may do the same.
    """

    def __init__(
        self,
        sample: InputSample,
        memory: Memory,
        base: int,
        spans: Mapping[int, Span],
        placement: OutputPlacement,
    ) -> None:
        self._sample, self._memory, self._base = sample, memory, base
        self._placement = placement
        self.spans = {
            place: span
            for place, span in spans.items()
            if memory.overlaps_inputs(span) and place not in placement.returns_inputs
        }

    def are_misplaced(self, writable: set[int]) -> bool:
        """Tell whether one lies elsewhere than in one input that may be overwritten, and was."""
        may_write = writable | self._sample.after.overwrites
        for place, span in self.spans.items():
            found = self._within(span)
            if found is None or not (found[2] in may_write or place in self._placement.aliases):
                return True
            if self._tells(span) and self._is_untouched(*found[:2]):
                return True
        return False

    def were_right(self, centers: Sequence[torch.Tensor | None] | None, slack: float) -> bool:
        """Tell whether an input that is an output now was right before the call.

        `centers` are what the outputs of a timed call are compared with, with so much `slack`.
        """
        for place, source in self._sources():
            item, center = self._sample.expected[place], centers[place] if centers else None
            if center is not None:
                different = compare(item, source, center, slack)
            elif item.value.device.type != "meta":
                different = compare(item, source)
            else:
                continue
            if not different.kind:
                return True
        return False

    def _sources(self) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield the values that lay where outputs lie now, as tensors of their shapes."""
        for place, span in self.spans.items():
            like, inside = self._sample.expected[place].value, self._within(span)
            if inside is None or not self._tells(span) or inside[0] % like.element_size():
                continue
            flat = elements(self._sample.image, like.dtype, like.numel(), inside[0])
            yield place, flat.view(like.shape)

    def _tells(self, span: Span) -> bool:
        return self._sample.variation.partition("/")[0] in USUAL and span[1] - span[0] > MIN_BYTES

    def _within(self, span: Span) -> tuple[int, int, int] | None:
        """Return the bytes of the sample and the argument in whose tensor an output lies."""
        offset = self._memory.input_offset(span[0])
        if offset is None:
            return None
        start, stop = offset - self._base, offset - self._base + span[1] - span[0]
        for first, last, index in self._sample.names:
            if first <= start and stop <= last:
                return start, stop, index
        return None

    def _is_untouched(self, start: int, stop: int) -> bool:
        arena, first = self._memory.inputs(self._base, self._sample.size, [[start, stop]])
        return same_bytes(arena, first, self._sample.image, start, stop)
