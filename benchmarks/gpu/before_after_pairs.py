"""Baselines and candidates of `python -m benchmarks.gpu.before_after`.

A function takes the shared input of INPUT_NUMBERS float32 numbers and returns a new tensor. It is
made anew for every request, as a problem or a candidate is loaded anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import torch
import triton
import triton.language as tl

INPUT_NUMBERS = 1 << 27
MIB_NUMBERS = 1 << 18
Function = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Comparison:
    """A baseline and a candidate that compute the same."""

    name: str
    baseline: Callable[[], Function]
    candidate: Callable[[], Function]


@triton.jit  # type: ignore[untyped-decorator]
def _affine(x, out, count, factor, term, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < count)
    tl.store(out + at, value * factor + term, mask=at < count)


@triton.jit  # type: ignore[untyped-decorator]
def _softmax(x, out, columns, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * columns
    value = tl.load(x + row + at, mask=at < columns, other=float("-inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(out + row + at, power / tl.sum(power, 0), mask=at < columns)


def affine(numbers: int, factor: float, term: float) -> Function:
    def work(x: torch.Tensor) -> torch.Tensor:
        part = x[:numbers]
        out = torch.empty_like(part)
        _affine[(triton.cdiv(numbers, 1024),)](part, out, numbers, factor, term, BLOCK=1024)
        return out

    return work


def triton_softmax(rows: int, columns: int) -> Function:
    def work(x: torch.Tensor) -> torch.Tensor:
        part = x[: rows * columns]
        out = torch.empty_like(part)
        _softmax[(rows,)](part, out, columns, BLOCK=triton.next_power_of_2(columns), num_warps=8)
        return out

    return work


def torch_softmax(rows: int, columns: int) -> Function:
    return lambda x: torch.softmax(x[: rows * columns].view(rows, columns), 1)


def five_additions(x: torch.Tensor) -> torch.Tensor:
    part = x[:MIB_NUMBERS]
    for _ in range(5):
        part = part + 1.0
    return part


def relu(numbers: int) -> Function:
    return lambda x: torch.relu(x[:numbers])


def product(side: int) -> Function:
    return lambda x: x[: side * side].view(side, side) @ x[side : side * side + side].view(side, -1)


def layer_norm(rows: int, columns: int) -> Function:
    return lambda x: torch.nn.functional.layer_norm(
        x[: rows * columns].view(rows, columns), (columns,)
    )


def transposed_3d(
    channels: tuple[int, int], kernel: tuple[int, int, int], sides: tuple[int, int, int]
) -> Function:
    module = torch.nn.ConvTranspose3d(*channels, kernel, bias=False).cuda().eval()
    shape = (16, channels[0], *sides)
    count = prod(shape)
    return lambda x: module(x[:count].view(shape))


def own(make: Callable[[], Function], name: str) -> Comparison:
    return Comparison(f"{name} against itself", make, make)


COMPARISONS = [
    own(lambda: relu(MIB_NUMBERS), "relu 1 MiB"),
    own(lambda: five_additions, "five additions of 1 MiB"),
    own(lambda: product(512), "matrix product 512"),
    Comparison(
        "softmax 16 x 16384, torch and Triton",
        lambda: torch_softmax(16, 16384),
        lambda: triton_softmax(16, 16384),
    ),
    Comparison(
        "five additions and one Triton kernel",
        lambda: five_additions,
        lambda: affine(MIB_NUMBERS, 1.0, 5.0),
    ),
    Comparison(
        "x * 2 + 1, two kernels and one",
        lambda: lambda x: x[:MIB_NUMBERS] * 2 + 1,
        lambda: affine(MIB_NUMBERS, 2.0, 1.0),
    ),
    Comparison(
        "softmax 4096 x 2048, torch and Triton",
        lambda: torch_softmax(4096, 2048),
        lambda: triton_softmax(4096, 2048),
    ),
    Comparison(
        "x * 2 + 1 of 64 MiB, two kernels and one",
        lambda: lambda x: x[: 64 * MIB_NUMBERS] * 2 + 1,
        lambda: affine(64 * MIB_NUMBERS, 2.0, 1.0),
    ),
    own(lambda: layer_norm(2048, 4096), "layer norm 2048 x 4096"),
    own(lambda: product(2048), "matrix product 2048"),
    own(
        lambda: transposed_3d((64, 128), (3, 3, 3), (8, 16, 16)), "transposed convolution 3 x 3 x 3"
    ),
    own(
        lambda: transposed_3d((32, 64), (3, 5, 5), (64, 64, 64)), "transposed convolution 3 x 5 x 5"
    ),
]
