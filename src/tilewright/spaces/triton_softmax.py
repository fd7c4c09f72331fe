"""A space in Triton: softmax over rows, in one, two or three passes.

One pass is right only if BLOCK covers a row, and several passes are fast only with a short BLOCK. A
program between the two is slower or wrong.
"""

from __future__ import annotations

from tilewright.spaces.space import Knobs, Space

HONEST = {"shift": "maximum", "tail": "masked", "result": "computed"}
"""The value of each knob whose other values make a program wrong or a cheat."""
PLAIN = {"rows": 1, "warps": 8, "vector": 4, "exponential": "exp"}
"""The values of other knobs where a flaw occurs, so that flawed programs are few."""
ABOUT = {
    1: "a block holds whole rows, which are read once",
    2: "the first pass finds maximum and sum together, the second one writes",
    3: "a pass each for the maximum, the sum and the output",
}
HEAD = '''\
"""Softmax over rows: {about}."""

import torch
import triton
import triton.language as tl

ROWS, BLOCK = {rows}, {block}  # rows and columns of a block
VECTOR = {vector}  # columns of one memory access
WARPS = {warps}


@triton.jit(do_not_specialize=["cols"])
def softmax_kernel(
    x_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr, VECTOR: tl.constexpr
):
    tl.static_assert(ROWS * BLOCK <= 32768, "a block must fit the registers")
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    start = tl.multiple_of(tl.minimum(row, rows - 1) * cols, [VECTOR, VECTOR])
    lane = tl.arange(0, BLOCK)[None, :]
'''
LOAD = "tl.load(x_ptr + start + {col}{mask})\n"
MASK = ', mask={col} < cols, other=float("-inf")'
STORE = "tl.store(y_ptr + start + {col}, {value}, mask=(row < rows) & ({col} < cols))\n"
LOOP = "    for first in range(0, cols, BLOCK):\n        col = first + lane\n        x = "
FIND = """\
    peak = tl.full((ROWS, 1), -3.4e38, dtype=tl.float32)
"""
FIND_LOOP = "        peak = tl.maximum(peak, tl.max(x, axis=1)[:, None])\n"
SUM = "    total = tl.zeros((ROWS, 1), dtype=tl.float32)\n"
SUM_LOOP = "        total += tl.sum({exp}, axis=1)[:, None]\n"
ONLINE_LOOP = """\
        higher = tl.maximum(peak, tl.max(x, axis=1)[:, None])
        total = total * {down} + tl.sum({exp}, axis=1)[:, None]
        peak = higher
"""
TAIL = """

def {launch}(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    rows, cols = x.shape
    vector = VECTOR if cols % VECTOR == 0 else 1
    grid = (triton.cdiv(rows, ROWS),)
    softmax_kernel[grid](x, y, rows, cols, ROWS, BLOCK, vector, num_warps=WARPS)
    return y
"""
KEPT = """

_kept = {}


def softmax(x):
    key = (x.data_ptr(), x.shape)
    if key not in _kept:
        _kept[key] = launch(x)
    return _kept[key].clone()
"""
UNUSED = """

def softmax(x):
    launch(x[:1])
    return torch.softmax(x, dim=-1)
"""
AFTER = {"computed": "", "kept": KEPT, "unused": UNUSED}


def write(knobs: Knobs) -> str:
    """Return the source of a program."""
    result, passes = str(knobs["result"]), int(knobs["passes"])
    fields = {
        **knobs,
        "about": ABOUT[passes],
        "launch": "softmax" if result == "computed" else "launch",
    }
    body = _one_pass(knobs) if passes == 1 else _several_passes(knobs)
    return HEAD.format(**fields) + body + TAIL.format(**fields) + AFTER[result]


def _one_pass(knobs: Knobs) -> str:
    """Return the body of a kernel that reads each row once."""
    peak = "tl.max(x, axis=1)[:, None]" if knobs["shift"] == "maximum" else ""
    store = STORE.format(col="lane", value="e / tl.sum(e, axis=1)[:, None]")
    return f"    x = {_load(knobs, 'lane')}    e = {_power(knobs, 'x', peak)}\n    {store}"


def _several_passes(knobs: Knobs) -> str:
    """Return the body of a kernel that reads each row two or three times."""
    shifted, online = knobs["shift"] == "maximum", knobs["passes"] == 2
    read = LOOP + _load(knobs, "col")
    peak = "peak" if shifted else ""
    power = _power(knobs, "x", peak)
    text = FIND if shifted else ""
    if shifted and not online:
        text += read + FIND_LOOP
    text += SUM + read
    if shifted and online:
        down, up = _power(knobs, "peak", "higher"), _power(knobs, "x", "higher")
        text += ONLINE_LOOP.format(down=down, exp=up)
    else:
        text += SUM_LOOP.format(exp=power)
    return text + read + "        " + STORE.format(col="col", value=f"{power} / total")


def _load(knobs: Knobs, col: str) -> str:
    return LOAD.format(col=col, mask=MASK.format(col=col) if knobs["tail"] == "masked" else "")


def _power(knobs: Knobs, value: str, peak: str) -> str:
    """Return the exponential of a value above the largest one."""
    above = f"{value} - {peak}" if peak else value
    if knobs["exponential"] == "exp":
        return f"tl.exp({above})"
    return f"tl.exp2(({above}) * 1.4426950408889634)"


def allows(knobs: Knobs) -> bool:
    """Tell whether a combination is a program: at most one flaw, and a flaw in few surroundings."""
    flaws = [name for name, honest in HONEST.items() if knobs[name] != honest]
    if "shift" in flaws and knobs["passes"] == 3:
        # Without the maximum there is no third pass.
        return False
    plain = all(knobs[name] == value for name, value in PLAIN.items())
    return not flaws or (len(flaws) == 1 and plain)


SPACE = Space(
    name="triton_softmax",
    tag="python",
    values={
        "passes": (1, 2, 3),
        "block": (512, 1024, 2048, 4096, 8192),
        "rows": (1, 2, 4, 8),
        "warps": (2, 4, 8, 16),
        "vector": (1, 4),
        "exponential": ("exp", "exp2"),
        "shift": ("maximum", "none"),
        "tail": ("masked", "unmasked"),
        "result": ("computed", "kept", "unused"),
    },
    words={
        "passes": ("pass", "fus", "online"),
        "block": ("tile", "retile", "tiling", "block"),
        "rows": ("tile", "retile", "tiling", "rows per program"),
        "warps": ("warp", "num_warps", "occupancy"),
        "vector": ("vector", "coalesc", "contiguous"),
        "exponential": ("exp2", "exponential", "reorder"),
        "shift": ("maximum", "stabil"),
        "tail": ("tail", "mask"),
        "result": ("cache the result", "reuse"),
    },
    start={
        "passes": 3,
        "block": 1024,
        "rows": 1,
        "warps": 4,
        "vector": 1,
        "exponential": "exp",
        **HONEST,
    },
    allows=allows,
    write=write,
)
