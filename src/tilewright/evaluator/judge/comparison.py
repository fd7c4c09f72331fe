"""Is an output right? Its error against a float64 oracle, in units of the allowed error.

The bound per element (DESIGN section 5) is

    max(16 x the reference's own error at its 99.9th percentile,
        16 eps x max(|oracle|, RMS of the oracle's last-dimension slice))

with eps of the output's dtype, and never less than twice the reference's own error at that very
element, or the reference could be refused by its own rule. Where an output is beyond that, the
bound is widened to `SWAY_FACTOR` times what one rounding of the inputs does to the element, and
half the reference's own worst error, both up to a share of the output's median size (ADR 17): who
computes a difference of nearly equal numbers cannot do better.

Non-finite values must agree with the reference's, integers are exact wherever the reference itself
is certain of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

REFERENCE_ERROR_FACTOR = 16.0
EPS_FACTOR = 16.0
OWN_ERROR_FACTOR = 2.0
SWAY_FACTOR = 4.0
SWAY_CAP = 1e-4
"""Share of the output's median size that a sway may count at most: a flipped comparison is no
rounding, and a few huge elements say nothing of the others."""
PERCENTILE = 0.999
SAMPLE = 1 << 20


@dataclass(frozen=True)
class Difference:
    """The outcome of one comparison: `kind` is empty when the output is right."""

    kind: str
    message: str
    error_over_bound: float | None


@dataclass(frozen=True)
class Expected:
    """One expected output: the reference's value, the oracle's, and the reference's own error."""

    value: torch.Tensor
    oracle: torch.Tensor | None
    """float64, or `None` for integers and where no oracle could be had."""
    own_error: float
    sway: torch.Tensor | None = None
    """By how much the oracle moves when each input is rounded once, at least half the reference's
    own worst error; only where it is needed."""
    certain: torch.Tensor | None = None
    """For integers: where reference and oracle agree, so that exactness can be asked for."""


RIGHT = Difference("", "", None)


def expect(value: torch.Tensor, oracle: torch.Tensor | None) -> Expected:
    """Pair a reference output with its float64 twin."""
    if not value.is_floating_point():
        certain = None
        if oracle is not None and oracle.shape == value.shape:
            certain = oracle.to(value.dtype) == value
        return Expected(value, None, 0.0, certain=certain)
    if oracle is None:
        return Expected(value, None, 0.0)
    error = (value.double() - oracle).abs().reshape(-1)
    error = error[torch.isfinite(error)]
    return Expected(value, oracle, percentile(error, PERCENTILE))


def percentile(values: torch.Tensor, q: float) -> float:
    """Return the `q` quantile of a flat tensor (of every k-th element when it is long)."""
    if values.numel() == 0:
        return 0.0
    step = -(-values.numel() // SAMPLE)
    sample = values[::step]
    rank = min(int(q * sample.numel()), sample.numel() - 1)
    return float(sample.kthvalue(rank + 1).values)


def bound(expected: Expected, center: torch.Tensor, slack: float = 1.0) -> torch.Tensor:
    """Return the allowed error per element around `center`, float64, same shape."""
    eps = torch.finfo(expected.value.dtype).eps
    finite = torch.where(torch.isfinite(center), center, torch.zeros_like(center))
    size = finite.abs()
    if finite.dim() > 0:
        rms = finite.square().mean(-1, keepdim=True).sqrt()
        size = torch.maximum(size, rms.expand_as(size))
    floor = torch.full_like(size, REFERENCE_ERROR_FACTOR * expected.own_error * slack)
    if expected.oracle is not None and center is expected.oracle:
        own = OWN_ERROR_FACTOR * (expected.value.double() - expected.oracle).abs()
        floor = torch.maximum(floor, torch.where(torch.isfinite(own), own, floor))
        if expected.sway is not None:
            most = SWAY_CAP * percentile(finite.abs().reshape(-1), 0.5)
            floor = torch.maximum(floor, SWAY_FACTOR * expected.sway.clamp_max(most))
    return torch.maximum(floor, EPS_FACTOR * slack * eps * size).clamp_min(1e-300)


def describe_mismatch(expected: Expected, item: dict[str, Any]) -> Difference | None:
    """Compare what a contestant says of an output with what it must be; `None`: it fits."""
    if item.get("type") != "tensor":
        return Difference("dtype", f"expected a torch.Tensor, got {item.get('type')}", None)
    shape = list(expected.value.shape)
    if item["shape"] != shape:
        return Difference("shape", f"expected shape {shape}, got {item['shape']}", None)
    dtype = str(expected.value.dtype).removeprefix("torch.")
    if item["dtype"] != dtype:
        return Difference("dtype", f"expected {dtype}, got {item['dtype']}", None)
    device = expected.value.device.type
    placed = item["device"].partition(":")[0] == device
    if not placed or item["layout"] != "strided" or "address" not in item:
        where = f"{item['layout']} on {item['device']}"
        return Difference("dtype", f"expected a strided tensor on {device}, got {where}", None)
    return None


def compare(
    expected: Expected, output: torch.Tensor, center: torch.Tensor | None = None, slack: float = 1.0
) -> Difference:
    """Compare values. `center` replaces the oracle (the baseline's output of a timed call)."""
    value = expected.value if center is None else center
    if not value.is_floating_point():
        return _compare_exact(value, output, expected.certain if center is None else None)
    # The allowed error is nowhere below this: most timed outputs are done with in one pass.
    floor = REFERENCE_ERROR_FACTOR * expected.own_error * slack
    if center is not None and output.numel() and float((output - center).abs_().max()) <= floor:
        return RIGHT
    oracle = expected.oracle if center is None and expected.oracle is not None else value.double()
    got = output.double()
    kind = _nonfinite(value, oracle, got)
    if kind:
        return Difference("nonfinite", kind, None)
    both = torch.isfinite(got) & torch.isfinite(oracle)
    error = torch.where(both, (got - oracle).abs(), torch.zeros_like(got))
    ratio = error / bound(expected, oracle, slack)
    if ratio.numel() == 0:
        return RIGHT
    worst = float(ratio.max())
    if worst <= 1.0:
        return Difference("", "", worst)
    # On the host: a device loads what these need, which takes a second, for one message.
    ratio = ratio.cpu()
    index = int(ratio.argmax())
    place = _place(index, ratio.shape)
    wrong = int((ratio > 1).sum())
    message = (
        f"at {place}: expected {float(oracle.reshape(-1)[index]):.8g}, "
        f"got {float(got.reshape(-1)[index]):.8g}; error {worst:.3g} times the allowed one; "
        f"{wrong} of {ratio.numel()} elements are wrong"
    )
    return Difference("values", message, worst)


def _nonfinite(value: torch.Tensor, oracle: torch.Tensor, got: torch.Tensor) -> str:
    """Describe the first disagreement on NaN or infinity; empty when there is none.

    Where the reference overflows but the oracle does not, a finite answer is allowed too.
    """
    want = value.double()
    same = (torch.isnan(want) & torch.isnan(got)) | (want == got)
    finite = torch.isfinite(got)
    wrong = torch.where(torch.isfinite(want), ~finite, ~same & ~(finite & torch.isfinite(oracle)))
    if not bool(wrong.any()):
        return ""
    wrong = wrong.cpu()
    index = int(wrong.reshape(-1).int().argmax())
    place = _place(index, wrong.shape)
    return (
        f"at {place}: expected {float(want.reshape(-1)[index])}, "
        f"got {float(got.reshape(-1)[index])}; {int(wrong.sum())} elements disagree"
    )


def _place(index: int, shape: torch.Size) -> list[int]:
    """Return the coordinates of a flat index."""
    place = []
    for size in reversed(shape):
        index, rest = divmod(index, size)
        place.append(rest)
    return place[::-1]


def _compare_exact(
    value: torch.Tensor, output: torch.Tensor, certain: torch.Tensor | None
) -> Difference:
    wrong = value != output
    if certain is not None:
        wrong &= certain
    if not bool(wrong.any()):
        return RIGHT
    wrong = wrong.cpu()
    index = int(wrong.reshape(-1).int().argmax())
    message = (
        f"at flat index {index}: expected {value.reshape(-1)[index].item()}, "
        f"got {output.reshape(-1)[index].item()}; {int(wrong.sum())} of {value.numel()} are wrong"
    )
    return Difference("values", message, None)
