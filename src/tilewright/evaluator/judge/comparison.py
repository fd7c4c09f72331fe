"""Is an output right? Its error against a float64 oracle, in units of the tolerance.

The tolerance of an element is the largest of

- 16 x the 99.9th percentile of the reference's error;
- 16 eps x max(|oracle|, RMS of the oracle's last-dimension slice), eps of the output's dtype;
- 2 x the reference's error at that element, or the reference could be rejected;
- of 16-bit outputs on a variation 2^-16 x the RMS of the oracle (ADR 71);
- where an output is beyond these, `SENSITIVITY_FACTOR` x the effect of one rounding of the inputs.

That effect counts as at least half of the reference's worst error and at most `MAX_SENSITIVITY`.
Up to 0.01 % of the elements may exceed the tolerance, by at most twice that worst error (ADR 17).
Subtracting nearly equal numbers loses precision in every implementation, at random elements.
In float32, `TAIL_SHARE` of the elements may be off by `TAIL_FACTOR` times the tolerance.
The error as a whole must be like that of rounding too (`error_statistics`, ADR 46). A timed output
is compared with the baseline's: by its elements, and by the RMS of the whole difference.
Non-finite values must agree with the reference's. Integers: see `integer_comparison`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch

from tilewright.evaluator.judge.element_errors import (
    TAIL_FACTOR,
    ElementErrors,
    place_of,
    with_known,
    within_outlier_budget,
    within_tail,
)
from tilewright.evaluator.judge.error_statistics import excess, rms_of, whole_limit
from tilewright.evaluator.judge.integer_comparison import OtherIntegers, compare_integers
from tilewright.evaluator.judge.number_formats import (
    FLOAT8,
    FLOAT8_STEPS,
    differing,
    is_inexact,
    least_step,
    parts,
    sizes,
    widened,
)

REFERENCE_ERROR_FACTOR = 16.0
EPS_FACTOR = 16.0
WORST_REFERENCE_ERROR_FACTOR = 2.0
SENSITIVITY_FACTOR = 4.0
MAX_SENSITIVITY = 1e-4
"""Largest input-rounding sensitivity that counts, as a share of the output's median size. A
comparison that flips is no rounding, and a few huge elements say nothing about the others."""
CLIP = 2.0
"""Errors of the reference count in RMS and bias up to this many times its 99.9th percentile."""
PERCENTILE = 0.999
SAMPLE = 1 << 20
CHUNK_ELEMENTS = 1 << 26
"""Elements that are compared at once: half a gigabyte for each float64 that is made of them."""


@dataclass(frozen=True)
class Mismatch:
    """The outcome of one comparison: `kind` is empty when the output is right."""

    kind: str = ""
    message: str = ""
    error_over_tolerance: float | None = None


@dataclass(frozen=True)
class Expected:
    """One expected output: the reference's value, the oracle's, and the reference's error."""

    value: torch.Tensor
    oracle: torch.Tensor | None
    """float64, or `None` for integers and where there is none."""
    reference_error: float
    rounding_sensitivity: torch.Tensor | None = None
    """By how much the oracle moves when each input is rounded once, at least half the reference's
    own worst error; only where it is needed."""
    worst_reference_error: float = 0.0
    """The reference's worst error beyond the tolerance; set only with `rounding_sensitivity`."""
    error_rms: float = 0.0
    """The RMS of the reference's error, for outputs that are compared without an oracle."""
    noise: float = 0.0
    """An error that every element may have in any case, on a variation alone. Inputs were scaled
    down and constants of the reference were not, or outputs have 16 bits (`nominal_errors`)."""
    accepted: tuple[OtherIntegers, ...] = ()
    """For integers: what other implementations of this precision return, besides `value`."""
    dtype: torch.dtype | None = None
    """The output's own dtype, where `value` and `oracle` hold its parts."""
    defined: torch.Tensor | None = None
    """Elements that the reference defines, which alone are compared; `None`: all."""


RIGHT = Mismatch()


def expect(value: torch.Tensor, oracle: torch.Tensor | None) -> Expected:
    """Pair a reference output with its float64 oracle."""
    if not is_inexact(value):
        known = oracle is not None and oracle.shape == value.shape
        accepted: tuple[OtherIntegers, ...] = ()
        if oracle is not None and known:
            accepted = (OtherIntegers.of(value, oracle.to(value.dtype)),)
        return Expected(value, None, 0.0, accepted=accepted)
    if oracle is None:
        return Expected(value, None, 0.0)
    reference_error, rms = error_of(value, oracle)
    return Expected(value, widened(oracle), reference_error, error_rms=rms)


def error_of(value: torch.Tensor, right: torch.Tensor) -> tuple[float, float]:
    """Return the `PERCENTILE` of the absolute errors of `value`, and their RMS up to `CLIP`."""
    # Of a large output only those elements that the percentile looks at.
    error = _error(parts(value), parts(right), _step(value.numel()))
    if not all_finite(error):
        error = _error(parts(value), parts(right))
        error = error[torch.isfinite(error)]
    found = percentile(error, PERCENTILE)
    return found, rms_of(error.clamp_max_(CLIP * found))


def in_parts(expected: Expected) -> Expected:
    """Return what is expected of the numbers that a float8 or complex output consists of."""
    dtype = expected.value.dtype
    if expected.dtype is not None or not (dtype in FLOAT8 or dtype.is_complex):
        return expected
    oracle = None if expected.oracle is None else parts(expected.oracle)
    # Steps of float8 bound the error, not the reference: its own steps are as large.
    error = 0.0 if dtype in FLOAT8 else expected.reference_error
    value = parts(expected.value)
    return replace(expected, value=value, oracle=oracle, reference_error=error, dtype=dtype)


def _error(value: torch.Tensor, oracle: torch.Tensor, step: int = 1) -> torch.Tensor:
    return (value.reshape(-1)[::step].double() - oracle.reshape(-1)[::step]).abs_()


def _step(count: int) -> int:
    return max(-(-count // SAMPLE), 1)


def all_finite(value: torch.Tensor) -> bool:
    """Tell whether every element is finite, in one pass: else their sum is not."""
    return math.isfinite(float(value.sum())) or bool(torch.isfinite(value).all())


def chunks(value: torch.Tensor) -> Iterable[torch.Tensor]:
    """Return the flat parts of a tensor that are compared at once."""
    parts: Iterable[torch.Tensor] = value.reshape(-1).split(CHUNK_ELEMENTS)
    return parts


def percentile(values: torch.Tensor, q: float) -> float:
    """Return the `q` quantile of a flat tensor (of every k-th element when it is long)."""
    if values.numel() == 0:
        return 0.0
    sample = values[:: _step(values.numel())]
    above = sample.numel() - min(int(q * sample.numel()), sample.numel() - 1)
    # The last few are found without the others being put in order.
    return float(sample.topk(above).values[-1])


def tolerance(expected: Expected, center: torch.Tensor, slack: float = 1.0) -> torch.Tensor:
    """Return the allowed error per element around `center`, float64, same shape."""
    finite = zero_where_infinite(center)
    allowed = _plain(expected, finite, slack)
    if expected.oracle is not None and center is expected.oracle:
        own = WORST_REFERENCE_ERROR_FACTOR * (expected.value.double() - expected.oracle).abs_()
        allowed = torch.maximum(allowed, zero_where_infinite(own))
        if expected.rounding_sensitivity is not None:
            most = MAX_SENSITIVITY * percentile(finite.abs().reshape(-1), 0.5)
            allowed = torch.maximum(
                allowed, SENSITIVITY_FACTOR * expected.rounding_sensitivity.clamp_max(most)
            )
    return allowed


def _plain(expected: Expected, finite: torch.Tensor, slack: float = 1.0) -> torch.Tensor:
    """Return the tolerance without the part that the reference's error at an element adds."""
    dtype = expected.dtype or expected.value.dtype
    factor = slack * (FLOAT8_STEPS if dtype in FLOAT8 else EPS_FACTOR)
    floor = max(REFERENCE_ERROR_FACTOR * expected.reference_error * slack, expected.noise)
    least = max(floor, factor * least_step(dtype), 1e-300)
    return (factor * torch.finfo(dtype).eps * sizes(finite, dtype)).clamp_min_(least)


def with_sensitivity(expected: Expected, rounding_sensitivity: torch.Tensor) -> Expected:
    """Widen the tolerance by the input-rounding sensitivity and by the reference's error."""
    if expected.value.numel() == 0:
        return replace(expected, rounding_sensitivity=rounding_sensitivity)
    worst = beyond = 0.0
    plain = in_parts(expected)
    for _, part, value, _ in row_parts(plain, plain.value, None):
        assert part.oracle is not None
        own = (value.double() - part.oracle).abs_().nan_to_num_(0.0, 0.0, 0.0)
        worst = max(worst, float(own.max()))
        own[own <= _plain(part, zero_where_infinite(part.oracle))] = 0.0
        beyond = max(beyond, float(own.max()))
    least = rounding_sensitivity.nan_to_num(0.0, 0.0, 0.0).clamp_min_(worst / 2)
    return replace(expected, rounding_sensitivity=least, worst_reference_error=beyond)


def zero_where_infinite(value: torch.Tensor) -> torch.Tensor:
    """Return a tensor with zeros in place of NaN and infinity."""
    return value if all_finite(value) else torch.where(torch.isfinite(value), value, 0.0)


def compare(
    expected: Expected, output: torch.Tensor, center: torch.Tensor | None = None, slack: float = 1.0
) -> Mismatch:
    """Compare values. `center` replaces the oracle (the baseline's output of a timed call)."""
    value = expected.value if center is None else center
    (output,) = with_known([output], [expected.defined], [value])
    if expected.value.dtype in FLOAT8:
        oracle = expected.oracle if center is None else None
        many = differing(value, oracle, output, slack)
        if many:
            return Mismatch("values", many)
    was_complex = expected.value.is_complex()
    expected, output = in_parts(expected), parts(output)
    center = None if center is None else parts(center)
    value = expected.value if center is None else center
    if not value.is_floating_point():
        message = compare_integers(value, output, expected.accepted if center is None else ())
        return Mismatch("values", message) if message else RIGHT
    if value.numel() == 0 or (center is not None and _is_near(expected, output, center, slack)):
        return RIGHT
    shape = [*value.shape[:-1], value.shape[-1] // 2, 2] if was_complex else [*value.shape]
    found = [_look(*part, slack) for part in row_parts(expected, output, center)]
    odd = [item for item in found if item.nonfinite]
    if odd:
        first, wrong = odd[0], sum(item.wrong for item in odd)
        message = (
            f"at {place_of(first.index, shape)}: expected {first.want}, got {first.got}; "
            f"{wrong} elements disagree"
        )
        return Mismatch("nonfinite", message)
    item = max(found, key=lambda each: each.worst)
    worst = item.worst
    kind, count = expected.dtype or value.dtype, value.numel()
    tail = kind not in FLOAT8 and within_tail(found, value)
    if worst > 1.0 and not tail and not within_outlier_budget(found, count):
        message = (
            f"at {place_of(item.index, shape)}: expected {item.want:.8g}, "
            f"got {item.got:.8g}; error {worst:.3g} times the allowed one; "
            f"{sum(each.wrong for each in found)} of {count} elements are wrong"
        )
        return Mismatch("values", message, worst)
    if worst > 1.0:
        beyond = [worst / TAIL_FACTOR] if tail else [each.outlier_ratio for each in found]
        worst = max(*beyond, *(each.worst_ratio for each in found))
        if not tail:
            output = _without_outliers(expected, output)
    if kind in FLOAT8:
        # The number of steps that differ was compared above.
        return Mismatch(error_over_tolerance=worst)
    return _compare_whole(expected, output, center, slack, worst)


def _is_near(expected: Expected, output: torch.Tensor, center: torch.Tensor, slack: float) -> bool:
    """Tell whether no difference, nor their RMS, is beyond what is allowed anywhere."""
    floor = REFERENCE_ERROR_FACTOR * expected.reference_error * slack
    limit = slack * whole_limit(center, expected.error_rms)
    squares = 0.0
    for one, other in zip(chunks(output), chunks(center), strict=True):
        difference = one.float() - other.float() if one.element_size() < 4 else one - other
        if not float(difference.abs().max()) <= floor:
            return False
        squares += float(torch.linalg.vector_norm(difference)) ** 2
    return squares <= limit**2 * output.numel()


def _compare_whole(
    expected: Expected,
    output: torch.Tensor,
    center: torch.Tensor | None,
    slack: float,
    worst: float,
) -> Mismatch:
    """Compare the error as a whole, once its elements, the worst of which is given, are right."""
    oracle = expected.oracle
    if center is not None or oracle is None:
        middle = expected.value if center is None else center
        error = rms_of(output.double() - middle.double())
        limit = slack * whole_limit(middle, expected.error_rms)
        # Nothing is allowed where every element is zero.
        ratio = error / limit if limit else math.inf if error else 0.0
        what = "the RMS error"
    else:
        clip = CLIP * expected.reference_error
        found = excess(expected.value, oracle, output, clip, _moved(expected), expected.noise)
        ratio, what = found.ratio, found.what
    if ratio <= 1.0:
        return Mismatch(error_over_tolerance=max(worst, ratio))
    return Mismatch("values", f"{what} is {ratio:.3g} times the allowed one", ratio)


def _without_outliers(expected: Expected, output: torch.Tensor) -> torch.Tensor:
    """Return an output whose few errors beyond the tolerance are left out of RMS and bias."""
    assert expected.oracle is not None
    got, oracle = output.double(), expected.oracle
    return torch.where((got - oracle).abs() > tolerance(expected, oracle), oracle, got)


def _moved(expected: Expected) -> torch.Tensor | None:
    """Return what one rounding of the inputs changes, where that is more than is given to all."""
    given = expected.rounding_sensitivity
    if given is None or expected.oracle is None:
        return None
    size = zero_where_infinite(expected.oracle).abs().reshape(-1)
    most = MAX_SENSITIVITY * percentile(size, 0.5)
    return torch.where(given > given.min(), given, 0.0).clamp_max_(most)


def row_parts(
    expected: Expected, output: torch.Tensor, center: torch.Tensor | None
) -> Iterator[tuple[int, Expected, torch.Tensor, torch.Tensor | None]]:
    """Yield parts of whole rows with their first flat index; the whole in float64 may not fit."""
    if output.numel() <= CHUNK_ELEMENTS or output.dim() == 0:
        yield 0, expected, output, center
        return
    width = output.shape[-1]
    rows, step = output.numel() // width, max(CHUNK_ELEMENTS // width, 1)
    whole = (expected.value, expected.oracle, expected.rounding_sensitivity, output, center)
    flat = [None if item is None else item.reshape(rows, width) for item in whole]
    for first in range(0, rows, step):
        some = [None if item is None else item[first : first + step] for item in flat]
        value, oracle, rounding_sensitivity, got, middle = some
        assert value is not None
        assert got is not None
        part = replace(
            expected, value=value, oracle=oracle, rounding_sensitivity=rounding_sensitivity
        )
        yield first * width, part, got, middle


def _look(
    start: int, expected: Expected, output: torch.Tensor, center: torch.Tensor | None, slack: float
) -> ElementErrors:
    """Compare a stretch that begins at the flat index `start`."""
    value = expected.value if center is None else center
    oracle = expected.oracle if center is None and expected.oracle is not None else value.double()
    got = output.double()
    error = (got - oracle).abs_()
    if not (all_finite(error) and all_finite(value)):
        odd = _nonfinite(value, oracle, got)
        if bool(odd.any()):
            # On the host: a device loads what this needs, which takes a second, for one message.
            odd = odd.cpu().reshape(-1)
            index = int(odd.int().argmax())
            want = float(value.reshape(-1)[index])
            wrong = int(odd.sum())
            return ElementErrors(
                True, 0.0, start + index, want, float(got.reshape(-1)[index]), wrong
            )
        both = torch.isfinite(got) & torch.isfinite(oracle)
        error = torch.where(both, error, 0.0)
    allowed = tolerance(expected, oracle, slack)
    ratio = error.div_(allowed)
    highest = float(ratio.max())
    if highest <= 1.0:
        return ElementErrors(False, highest, start, 0.0, 0.0, 0, 0.0, highest)
    few = WORST_REFERENCE_ERROR_FACTOR * expected.worst_reference_error if center is None else 0.0
    outlier_ratio = (
        float(torch.where(ratio > 1, ratio * allowed, 0.0).max()) / few if few else math.inf
    )
    worst_ratio = float(torch.where(ratio > 1, 0.0, ratio).max())
    flat = ratio.reshape(-1)
    # A device has loaded the kernels of `topk` and of sums; others, or a copy, take longer.
    index = int(flat.argmax() if flat.device.type == "cpu" else flat.topk(1).indices)
    want, seen = float(oracle.reshape(-1)[index]), float(got.reshape(-1)[index])
    wrong = count_of(ratio > 1)
    return ElementErrors(
        False, highest, start + index, want, seen, wrong, outlier_ratio, worst_ratio
    )


def count_of(where: torch.Tensor) -> int:
    """Return how many elements are true."""
    return round(float(torch.where(where, 1.0, 0.0).sum(dtype=torch.float64)))


def _nonfinite(value: torch.Tensor, oracle: torch.Tensor, got: torch.Tensor) -> torch.Tensor:
    """Tell where NaN or infinity disagree; a finite value may replace overflow of the reference."""
    want = value.double()
    same = (torch.isnan(want) & torch.isnan(got)) | (want == got)
    finite = torch.isfinite(got)
    return torch.where(torch.isfinite(want), ~finite, ~same & ~(finite & torch.isfinite(oracle)))
