"""The plan of a case's timed calls: values that count, other variations, and held outputs."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tilewright.evaluator.runners.cpu_runner import MIN_HELD
from tilewright.wire.names import PEAKED

HALF_TYPES = ("float16", "bfloat16")
"""Types of outputs for which calls that enter the ratio have inputs with uneven parts."""
VARIATIONS_KEY = "variations of timed calls"
"""Name of the secret choice of `VARIATIONS_OF_CASE`."""
VARIATIONS_OF_CASE = 3
"""Variations of which a case chooses in secret for these calls: so few that each comes often enough
to show a time of its own."""
MAX_HELD_BYTES = 16 << 20
"""Bytes of earlier outputs that their caller holds at most, beyond `MIN_HELD` calls and one."""
MAX_HELD = 6
"""Calls at most whose outputs their caller holds."""
AS_CHECKED_SHARE = 0.2
"""Share of timed calls that are compared by the rules of checked calls too. If a candidate omits
work in all of 24 calls, the probability that none is compared is below 0.5 %."""
CERTAIN_HALVES = 4
"""First halves of the blocks of a replicate, one of which is compared so in any case: a slow case
has no more."""
AS_CHECKED_S = 10.0
"""Seconds of such comparisons of a case after which they become fewer. A float64 oracle takes up to
2 s, and the evaluation has a limit. They never end: a candidate sees how long each took."""
MAX_AS_CHECKED_BYTES = 1 << 30
"""Bytes of inputs and outputs up to which a call is compared so. A device has no memory for the
float64 oracle of larger ones next to the slots of timed inputs."""
HEAP_OUTPUTS = 18
"""Outputs for which the heap of a runner has memory before its first timed call. An aligned
allocation does not fit where another of its size was freed, so blocks do not follow each other.
Calls have temporaries too."""
MAX_HEAP_BYTES = 512 << 20
"""Bytes of that memory at most; larger outputs are faulted in by the calls."""


def chosen_variations(choices: random.Random, usable: list[str]) -> list[str]:
    """Choose the variations of a case's timed calls."""
    return choices.sample(usable, min(VARIATIONS_OF_CASE, len(usable)))


def uneven(usable: Sequence[str], *, peaked: bool = False) -> str:
    """Return the variation with uneven parts on which the reference can judge, or `nominal`.

    With `peaked` it also accepts parts with a peak, if it accepts the full contrast.

    In 16-bit types rounding hides an eighth of a reduction over even values. Code that looks at
    some values, and does less where they are even, must save nothing in a call that counts.
    """
    found = next((name for name in usable if name.startswith("uneven_parts")), "nominal")
    return PEAKED if peaked and found == "uneven_parts" else found


def most_held(output_bytes: int) -> int:
    """Return of how many calls the caller holds the outputs at most."""
    if output_bytes > MAX_HEAP_BYTES // HEAP_OUTPUTS:
        return MIN_HELD
    return min(max(MAX_HELD_BYTES // max(output_bytes, 1), MIN_HELD + 1), MAX_HELD)
