"""A space in Triton: `gelu(x @ w + b)` in half precision, with a fused epilogue.

Tiles and stages share the device's fast memory, so a larger tile is only built with fewer stages or
a shorter BLOCK_K. One move therefore leads from no such combination to another one.
"""

from __future__ import annotations

from tilewright.spaces.space import Knobs, Space

HONEST = {"sums": "float32", "tail": "masked", "result": "computed"}
"""The value of each knob whose other values make a program wrong or a cheat."""
PLAIN = {"stages": 3, "warps": 8, "group": 8, "fused": "all"}
"""The values of other knobs where a flaw occurs, so that flawed programs are few."""
ABOUT = {
    "none": "the product in Triton, bias and GELU in torch",
    "bias": "the product and the bias in Triton, GELU in torch",
    "all": "one Triton kernel for the product, the bias and GELU",
}
HEAD = '''\
"""gelu(x @ w + b): {about}."""

import torch{functional}
import triton
import triton.language as tl

BLOCK_M, BLOCK_N, BLOCK_K = {block_m}, {block_n}, {block_k}
GROUP = {group}  # rows of tiles that share columns of w while these are in the cache
STAGES, WARPS = {stages}, {warps}


@triton.jit
def {kernel}(
    x_ptr, w_ptr, {bias_pointer}y_ptr, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    program = tl.program_id(0)
    first = program // (GROUP * tiles_n) * GROUP
    height = tl.minimum(tiles_m - first, GROUP)
    within = program % (GROUP * tiles_n)
    row = (first + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    col = within // height * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.{sums})
    for start in range(0, k, BLOCK_K):
        across = start + tl.arange(0, BLOCK_K)[None, :]
        down = start + tl.arange(0, BLOCK_K)[:, None]
        x = tl.load(x_ptr + row * k + across, mask={mask_x}, other=0.0)
        w = tl.load(w_ptr + down * n + col, mask={mask_w}, other=0.0)
        total = {sum}
'''
TAIL = """\
    tl.store(y_ptr + row * n + col, {value}.to(tl.float16), mask=(row < m) & (col < n))


def {launch}(x, weight, bias):
    x, weight = x.contiguous(), weight.contiguous()
    m, k = x.shape
    n = weight.shape[1]
    y = x.new_empty(m, n)
    grid = (triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N),)
    {kernel}[grid](
        x, weight, {bias_argument}y, m, n, k,
        BLOCK_M, BLOCK_N, BLOCK_K, GROUP, num_stages=STAGES, num_warps=WARPS,
    )
    return {returned}
"""
BIAS = "    total += tl.load(bias_ptr + col, mask=col < n, other=0.0)\n"
GELU = "    y = 0.5 * total * (1.0 + tl.erf(total * 0.7071067811865476))\n"
RETURNED = {"none": "F.gelu(y + bias)", "bias": "F.gelu(y)", "all": "y"}
KEPT = """

_kept = {}


def linear_gelu(x, weight, bias):
    key = (x.data_ptr(), weight.data_ptr(), x.shape)
    if key not in _kept:
        _kept[key] = launch(x, weight, bias)
    return _kept[key].clone()
"""
UNUSED = """

def linear_gelu(x, weight, bias):
    launch(x[:1], weight, bias)
    return torch.nn.functional.gelu(torch.addmm(bias, x, weight))
"""
AFTER = {"computed": "", "kept": KEPT, "unused": UNUSED}


def write(knobs: Knobs) -> str:
    """Return the source of a program."""
    fused, result = str(knobs["fused"]), str(knobs["result"])
    masked, half = knobs["tail"] == "masked", knobs["sums"] == "bfloat16"
    with_bias, with_gelu = fused != "none", fused == "all"
    fields = {
        **knobs,
        "about": ABOUT[fused],
        "functional": "" if with_gelu else "\nimport torch.nn.functional as F",
        "kernel": {"none": "matmul_kernel", "bias": "linear_kernel"}.get(fused, "fused_kernel"),
        "bias_pointer": "bias_ptr, " if with_bias else "",
        "bias_argument": "bias, " if with_bias else "",
        "mask_x": "(row < m) & (across < k)" if masked else "row < m",
        "mask_w": "(down < k) & (col < n)" if masked else "col < n",
        "sum": "(total + tl.dot(x, w)).to(tl.bfloat16)" if half else "tl.dot(x, w, total)",
        "value": "y" if with_gelu else "total",
        "launch": "linear_gelu" if result == "computed" else "launch",
        "returned": RETURNED[fused],
    }
    widened = "    total = total.to(tl.float32)\n" if half else ""
    epilogue = widened + (BIAS if with_bias else "") + (GELU if with_gelu else "")
    return HEAD.format(**fields) + epilogue + TAIL.format(**fields) + AFTER[result]


def allows(knobs: Knobs) -> bool:
    """Tell whether a combination is a program: at most one flaw, and a flaw in few surroundings."""
    flaws = sum(knobs[name] != honest for name, honest in HONEST.items())
    return not flaws or (flaws == 1 and all(knobs[name] == value for name, value in PLAIN.items()))


SPACE = Space(
    name="triton_gemm",
    tag="python",
    values={
        "block_m": (16, 64, 128),
        "block_n": (64, 128, 256),
        "block_k": (32, 64, 128),
        "stages": (2, 3, 4),
        "warps": (4, 8),
        "group": (1, 8),
        "fused": ("none", "bias", "all"),
        "sums": ("float32", "bfloat16"),
        "tail": ("masked", "unmasked"),
        "result": ("computed", "kept", "unused"),
    },
    words={
        "block_m": ("tile", "retile", "tiling", "block"),
        "block_n": ("tile", "retile", "tiling", "block"),
        "block_k": ("tile", "retile", "tiling", "block"),
        "stages": ("stage", "pipelin", "num_stages"),
        "warps": ("warp", "num_warps", "occupancy"),
        "group": ("reorder", "group", "swizzl"),
        "fused": ("fus", "epilogue"),
        "sums": ("precision", "accumulat", "float16"),
        "tail": ("tail", "mask"),
        "result": ("cache the result", "reuse"),
    },
    start={
        "block_m": 16,
        "block_n": 64,
        "block_k": 32,
        "stages": 2,
        "warps": 4,
        "group": 1,
        "fused": "none",
        **HONEST,
    },
    allows=allows,
    write=write,
)
