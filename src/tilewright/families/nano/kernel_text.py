"""Triton kernels of the family as lines of text: pointwise, by rows, and products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.families.nano.compositions import Operation

STEP = "    "
TILE_ROWS, TILE_INNER = 64, 32
"""Rows of the tile of a product, and columns of its factors in one step."""

ROW_PLACES = {"full": "row + i, mask=m, other=0.0", "row": "i, mask=m, other=0.0"}
"""The address of an element of a further input, in a kernel by rows."""


@dataclass(frozen=True)
class Faults:
    """The changes that make the text of a kernel wrong."""

    constant: bool = False
    half: bool = False
    no_maximum: bool = False
    padding: bool = False


def arguments_of(operators: Sequence[Operation]) -> list[str]:
    """Return the names of the further inputs that some operators read."""
    return [item.argument for item in operators if item.extra is not None]


def expression(item: Operation, value: str, extra: str, faults: Faults) -> str:
    """Return the Triton expression of an operator."""
    constant = item.constant
    if faults.constant and constant is not None:
        constant += 0.25
    return item.triton.format(v=value, e=extra, c=constant)


def applied(
    operators: Sequence[Operation], places: dict[str, str], faults: Faults
) -> Iterator[str]:
    """Yield the lines that apply pointwise operators to `v`.

    `places` has the address of an element for each kind of further input, as text.
    """
    for item in operators:
        extra = f"tl.load({item.argument} + {places[item.extra]})" if item.extra else ""
        yield f"v = {expression(item, 'v', extra, faults)}"


def pointwise(name: str, operators: Sequence[Operation], faults: Faults) -> list[str]:
    """Return a kernel over all elements."""
    given = ["x", *arguments_of(operators), "out", "size", "cols", "BLOCK: tl.constexpr"]
    places = {"full": "i, mask=m", "row": "i % cols, mask=m"}
    body = [
        "i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
        "m = i < size",
        "v = tl.load(x + i, mask=m)",
        *(["v = v.to(tl.bfloat16).to(tl.float32)"] if faults.half else []),
        *applied(operators, places, faults),
        "tl.store(out + i, v, mask=m)",
    ]
    return ["@triton.jit", f"def {name}({', '.join(given)}):", *(STEP + line for line in body)]


def by_rows(name: str, operators: Sequence[Operation], core: int, faults: Faults) -> list[str]:
    """Return a kernel with one program for each row, for a reduction and what stands around it."""
    reduction = operators[core].name
    given = ["x", *arguments_of(operators), "out", "cols", "BLOCK: tl.constexpr"]
    read = _read(operators[:core], faults, "-float('inf')" if reduction == "softmax" else "0.0")
    lines = ["row = tl.program_id(0) * cols", "j = tl.arange(0, BLOCK)"]
    if reduction == "softmax":
        lines += _softmax_sums(read, faults)
        result = ["v = tl.exp(v - top) / total"]
    else:
        lines += _mean_square(read, faults)
        result = ["v = v * factor"]
    rest = list(applied(operators[core + 1 :], ROW_PLACES, faults))
    lines += _loop([*read, *result, *rest, "tl.store(out + row + i, v, mask=m)"])
    return ["@triton.jit", f"def {name}({', '.join(given)}):", *(STEP + line for line in lines)]


def _read(operators: Sequence[Operation], faults: Faults, other: str) -> list[str]:
    half = ["v = v.to(tl.bfloat16).to(tl.float32)"] if faults.half else []
    # Columns beyond the row must not count in the sums.
    outside = [] if faults.padding else [f"v = tl.where(m, v, {other})"]
    return [
        "m = i < cols",
        "v = tl.load(x + row + i, mask=m, other=0.0)",
        *half,
        *applied(operators, ROW_PLACES, faults),
        *outside,
    ]


def _loop(lines: Sequence[str]) -> list[str]:
    return [
        "for start in range(0, cols, BLOCK):",
        f"{STEP}i = start + j",
        *(STEP + line for line in lines),
    ]


def _softmax_sums(read: Sequence[str], faults: Faults) -> list[str]:
    highest = ["top = 0.0"]
    if not faults.no_maximum:
        highest = [
            "peak = tl.full((BLOCK,), -float('inf'), tl.float32)",
            *_loop([*read, "peak = tl.maximum(peak, v)"]),
            "top = tl.max(peak)",
        ]
    return [
        *highest,
        "parts = tl.zeros((BLOCK,), tl.float32)",
        *_loop([*read, "parts += tl.exp(v - top)"]),
        "total = tl.sum(parts)",
    ]


def _mean_square(read: Sequence[str], faults: Faults) -> list[str]:
    count = "(tl.cdiv(cols, BLOCK) * BLOCK)" if faults.padding else "cols"
    return [
        "parts = tl.zeros((BLOCK,), tl.float32)",
        *_loop([*read, "parts += v * v"]),
        f"factor = tl.rsqrt(tl.sum(parts) / {count} + 1e-06)",
    ]


def product(name: str, operators: Sequence[Operation], faults: Faults) -> list[str]:
    """Return a kernel of a matrix product whose epilogue applies further operators."""
    given = ["x", *arguments_of(operators), "out", "rows", "cols", "inner", "BLOCK: tl.constexpr"]
    places = {
        "full": "at, mask=m",
        "row": "j[None, :], mask=j[None, :] < cols, other=0.0",
    }
    read_a = "x + i[:, None] * inner + k[None, :]"
    read_b = "w + j[None, :] * inner + k[:, None]"
    factors = [
        f"k = start + tl.arange(0, {TILE_INNER})",
        f"a = tl.load({read_a}, mask=(i[:, None] < rows) & (k[None, :] < inner), other=0.0)",
        f"c = tl.load({read_b}, mask=(j[None, :] < cols) & (k[:, None] < inner), other=0.0)",
        *(["a = a.to(tl.bfloat16)", "c = c.to(tl.bfloat16)"] if faults.half else []),
        "v = tl.dot(a, c, v)",
    ]
    body = [
        f"i = tl.program_id(0) * {TILE_ROWS} + tl.arange(0, {TILE_ROWS})",
        "j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)",
        f"v = tl.zeros(({TILE_ROWS}, BLOCK), tl.float32)",
        f"for start in range(0, inner, {TILE_INNER}):",
        *(STEP + line for line in factors),
        "at = i[:, None] * cols + j[None, :]",
        "m = (i[:, None] < rows) & (j[None, :] < cols)",
        *applied(operators[1:], places, faults),
        "tl.store(out + at, v, mask=m)",
    ]
    return ["@triton.jit", f"def {name}({', '.join(given)}):", *(STEP + line for line in body)]
