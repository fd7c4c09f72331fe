"""Varied input samples: weaker variations where the reference cannot judge, and what they allow."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from tilewright.evaluator.judge import inputs
from tilewright.evaluator.judge.error_statistics import is_short, rms_of
from tilewright.evaluator.judge.float64_oracle import run_double
from tilewright.evaluator.judge.inputs import InputSample
from tilewright.evaluator.judge.reference import Reference, take_out_of_memory
from tilewright.evaluator.judge.reference_state import undisturbed
from tilewright.evaluator.judge.variations import FACTORS, WEAKER
from tilewright.evaluator.judge_client.problem_messages import TryVariation, VariationTried
from tilewright.wire.frames import Fields

SMALLER = ("scale_down", "below_half_range")
"""Variations after which the inputs are smaller in relation to constants of the reference."""
NOISE = 4.0
"""Roundings of a nominal output that an output of smaller inputs may be off by. An exponential
minus one is off by one of them however small its argument."""
MAX_NOISE = 2.0**-6
"""Most of an output's RMS that this may be."""
HOMOGENEOUS = 1e-6
"""Relative difference up to which smaller inputs made the outputs smaller, and nothing else."""


def make_varied_sample(
    reference: Reference,
    params: Fields,
    variation: str,
    seed: int,
    forward_seed: int,
    *,
    double: bool,
) -> InputSample:
    """Sample inputs with a variation, or with a weaker form of it that the reference can judge."""
    # The check of the problem may have run out of memory, which says nothing of this sample.
    take_out_of_memory(reference)
    names = WEAKER.get(variation, (variation,))
    sample = inputs.make_sample(reference, params, names[0], seed, forward_seed, double=double)
    for name in names[1:]:
        if not sample.skipped or not sample.expected:
            break
        sample = inputs.make_sample(reference, params, name, seed, forward_seed, double=double)
    if variation in SMALLER and double and not sample.skipped:
        _allow_noise(reference, params, sample, seed)
    return sample


def try_variation(reference: Reference, message: TryVariation) -> VariationTried:
    """Tell whether the reference can judge on a variation, and leave it as it was."""
    given = (message.params, message.variation, message.seed, message.forward_seed)
    with undisturbed(reference):
        sample = inputs.make_sample(reference, *given, double=False)
    return VariationTried(sample.skipped)


def _allow_noise(reference: Reference, params: Fields, sample: InputSample, seed: int) -> None:
    """Allow the rounding of nominal values, unless all that the reference computes is smaller.

    An implementation may compute with a constant of the reference next to the inputs. It is then as
    inaccurate as on nominal inputs. In 16-bit types nothing would be left to judge.
    """
    nominal = None
    if sample.oracle == "float64":
        args = reference.arguments(params, seed)
        grads, seed = sample.grad_outputs(), sample.forward_seed
        nominal = run_double(reference, args, grads, seed, sample.after.written)
    if nominal is None:
        sample.skipped = "no float64 oracle tells what smaller inputs change"
        return
    pairs = list(zip(sample.expected, nominal, strict=True))
    factor = FACTORS[sample.variation]
    if all(_homogeneous(item.oracle, value, factor) for item, value in pairs):
        return
    if _has_short_values(sample) or sample.variation == "below_half_range":
        sample.skipped = "constants of the reference are larger than such inputs"
        return
    sample.expected = [
        item
        if item.oracle is None
        else replace(
            item,
            noise=min(
                NOISE * torch.finfo(item.value.dtype).eps * rms_of(value),
                MAX_NOISE * rms_of(item.oracle),
            ),
        )
        for item, value in pairs
    ]


def _has_short_values(sample: InputSample) -> bool:
    values = [*sample.tensors(), *(item.value for item in sample.expected)]
    return any(v.is_floating_point() and is_short(torch.finfo(v.dtype).eps) for v in values)


def _homogeneous(smaller: torch.Tensor | None, nominal: torch.Tensor, factor: float) -> bool:
    """Tell whether an output is the nominal one times a power of the factor of the inputs."""
    if smaller is None:
        return True
    before, after = rms_of(nominal), rms_of(smaller)
    if before == 0 or after == 0:
        return before == after
    degree = round(math.log(after / before) / math.log(factor))
    scaled = nominal * factor**degree
    return rms_of(smaller - scaled) <= HOMOGENEOUS * after
