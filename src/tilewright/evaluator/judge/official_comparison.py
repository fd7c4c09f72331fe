"""Comparison by the published rules of benchmarks, to the letter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tilewright.evaluator.judge.comparison import RIGHT, Mismatch
from tilewright.evaluator.judge.number_formats import FLOAT8, parts

HALF, SINGLE = 5e-3, 1e-5
"""KernelBench-X: relative and absolute tolerance of 16-bit floats, and of others."""

NOTHING = 1e-12
"""KernelBench-X: a norm below this is that of zeros, and the least denominator of an error."""


def compare_published(
    value: torch.Tensor, output: torch.Tensor, rule: Mapping[str, Any]
) -> Mismatch:
    """Compare two tensors of one shape and dtype by a rule of `comparison_rule`.

    `allclose`: KernelBench, one number as relative and absolute tolerance, NaN is wrong.
    `by_dtype`: KernelBench-X, NaN equals NaN, integers are exact.
    `elementwise`: GPU MODE, NaN equals NaN, in the arithmetic of the outputs' dtype.
    `quantized`: its quantization tasks: cosine, relative L1 and root mean square error.
    `runs`: TritonBench where tests print nothing: whatever ends is right.
    """
    if rule["name"] == "runs":
        return RIGHT
    if value.dtype in FLOAT8:
        value, output = parts(value), parts(output)
    if rule["name"] == "quantized":
        return _quantized(parts(value).double(), parts(output).double(), rule)
    if rule["name"] == "by_dtype":
        return _by_dtype(value, output)
    if rule["name"] == "elementwise":
        return _elementwise(value, output, rule["rtol"], rule["atol"])
    tolerance = rule["tolerance"]
    close = torch.allclose(value, output, atol=tolerance, rtol=tolerance)
    return RIGHT if close else _largest(value, output, tolerance)


def _by_dtype(value: torch.Tensor, output: torch.Tensor) -> Mismatch:
    if not value.is_floating_point() and not value.is_complex():
        wrong = int((value != output).sum())
        return Mismatch("values", f"{wrong} of {value.numel()} differ") if wrong else RIGHT
    tolerance = HALF if value.element_size() == 2 else SINGLE
    if torch.allclose(value, output, atol=tolerance, rtol=tolerance, equal_nan=True):
        return RIGHT
    return _largest(value, output, tolerance)


def _elementwise(value: torch.Tensor, output: torch.Tensor, rtol: float, atol: float) -> Mismatch:
    if rtol == atol == 0.0 or not (value.is_floating_point() or value.is_complex()):
        wrong = output != value
    else:
        wrong = (output - value).abs() > atol + rtol * value.abs()
        wrong |= output.isnan() ^ value.isnan()
        if not value.is_complex():
            wrong |= output.isposinf() ^ value.isposinf()
            wrong |= output.isneginf() ^ value.isneginf()
    count = int(wrong.count_nonzero())
    if not count:
        return RIGHT
    at = tuple(wrong.nonzero()[0].tolist())
    shown = f"first at {at}: {output[at].item():.6g}, expected {value[at].item():.6g}"
    return Mismatch("values", f"{count} of {value.numel()} differ, {shown}")


def _largest(value: torch.Tensor, output: torch.Tensor, tolerance: float) -> Mismatch:
    worst = float((value.to(torch.complex128) - output.to(torch.complex128)).abs().max())
    return Mismatch("values", f"largest difference {worst:.6g}, tolerance {tolerance:g}")


def _quantized(value: torch.Tensor, output: torch.Tensor, rule: Mapping[str, Any]) -> Mismatch:
    """Compare by three numbers; what is not finite is wrong.

    Two outputs of zeros are alike, and one of them is unlike any other, as in KernelBench-X's
    `utils/correction_utils.py`.
    """
    wanted, got = value.reshape(-1), output.reshape(-1)
    error = got - wanted
    rms = float(wanted.square().mean().sqrt())
    norms = float(wanted.norm()), float(got.norm())
    cosine = float(torch.nn.functional.cosine_similarity(wanted, got, dim=0))
    if min(norms) < NOTHING:
        cosine = float(max(norms) < NOTHING)
    l1 = float(error.abs().sum() / wanted.abs().sum().clamp_min(NOTHING))
    rmse = float(error.square().mean().sqrt()) / (max(rms, NOTHING) if rule["relative"] else 1.0)
    if cosine >= rule["cosine"] and l1 <= rule["l1"] and rmse <= rule["rmse"]:
        return RIGHT
    unit = " of the output's own" if rule["relative"] else ""
    message = (
        f"cosine {cosine:.4g} (at least {rule['cosine']:g}), relative L1 {l1:.4g} (at most "
        f"{rule['l1']:g}), root mean square error {rmse:.4g}{unit} (at most {rule['rmse']:g})"
    )
    return Mismatch("values", message)
