"""Outputs without the error of factors that were truncated to tf32 instead of rounded.

The tensor cores of a GPU ignore the 13 bits that tf32 lacks. Libraries round a float32 factor to
the nearest tf32 number first. `tl.dot` of Triton 3.6 does not: its code for sm_90 has no
`cvt.rna.tf32`. A truncated factor is 2^-11 too small in the mean, and so a product 2^-10.
Rounding errors cancel out in a long sum of positive terms, and this error does not. So it can be a
hundred times that of rounded factors.

This error is known, up to the order in which an implementation multiplies: it is that of the
reference with truncated factors. The judge takes it out of the output, and compares the rest as
always. A wider tolerance would also admit factors in bfloat16.
"""

from __future__ import annotations

import torch

from tilewright.evaluator.judge import reference as refs
from tilewright.evaluator.judge.inputs import InputSample
from tilewright.evaluator.judge.reference import Reference
from tilewright.evaluator.judge.tf32_products import (
    RoundedProducts,
    evaluated_in,
    truncated_to_tf32,
)

MAX_SHARE = 2.0
"""Times the error of the reference with truncated factors that an output may have. An
implementation may divide a product into two that follow one another."""
Outputs = list[torch.Tensor | None]


def without_truncation(
    reference: Reference, sample: InputSample, outputs: Outputs, centers: Outputs
) -> Outputs | None:
    """Return outputs less the error of truncated factors; `None`: there is no such error.

    `centers` are the outputs that count as right.
    """
    if not reference.precision.allows_tf32 or sample.random:
        return None
    mode = RoundedProducts(truncated_to_tf32)
    given = sample.arguments(), sample.grad_outputs(), sample.forward_seed
    values = evaluated_in(
        reference, mode, lambda: refs.run(reference, *given, sample.after.written)[0]
    )
    if values is None or not mode.used or len(values) != len(outputs):
        return None
    return [_corrected(*item) for item in zip(outputs, centers, values, strict=True)]


def _corrected(
    output: torch.Tensor | None, center: torch.Tensor | None, truncated: torch.Tensor
) -> torch.Tensor | None:
    """Subtract the share of the known error that fits best, at most `MAX_SHARE` of it."""
    if (
        output is None
        or center is None
        or output.dtype != torch.float32
        or not output.shape == center.shape == truncated.shape
    ):
        return output
    known = (truncated - center).nan_to_num_(0.0, 0.0, 0.0)
    seen = (output - center).nan_to_num_(0.0, 0.0, 0.0)
    size = float(torch.linalg.vector_norm(known, dtype=torch.float64)) ** 2
    if size == 0.0:
        return output
    share = float((seen.double() * known).sum()) / size
    return output - min(max(share, 0.0), MAX_SHARE) * known
