"""Operators over rows: softmax, norms, activations, reductions."""

from __future__ import annotations

from benchmarks.audit.operators.base import (
    HIDDEN,
    LLAMA,
    MLP,
    PATCHES,
    TOKENS,
    VIT,
    Case,
    Operator,
)

ROWS = 'rows, cols = case["rows"], case["cols"]\n    '
X = ROWS + "return (normal(generator, rows, cols),)"
TWO = ROWS + "return normal(generator, rows, cols), normal(generator, rows, cols)"
X_W = ROWS + "return normal(generator, rows, cols), normal(generator, cols)"
X_W_B = (
    ROWS + "return normal(generator, rows, cols), normal(generator, cols), normal(generator, cols)"
)
SCORES: tuple[Case, ...] = (
    {"name": "llama3_8b", "rows": 32 * 512, "cols": TOKENS},
    {"name": "vit_small", "rows": PATCHES * 6, "cols": 197},
)
HEADS: tuple[Case, ...] = ({"name": "llama3_8b", "rows": TOKENS * 32, "cols": 128},)
VOCABULARY: tuple[Case, ...] = ({"name": "llama3_8b", "rows": 512, "cols": 128256},)

OPERATORS = (
    Operator("softmax", "x", X, "return torch.softmax(x, -1)", SCORES, ("x",)),
    Operator("log_softmax", "x", X, "return torch.log_softmax(x, -1)", VOCABULARY),
    Operator(
        "layer_norm", "x, w, b", X_W_B,
        "return F.layer_norm(x, x.shape[-1:], w, b, 1e-5)", HIDDEN, ("x", "w", "b"),
    ),
    Operator(
        "rms_norm", "x, w", X_W, "return F.rms_norm(x, x.shape[-1:], w, 1e-6)",
        HIDDEN[LLAMA], ("x", "w"),
    ),
    Operator(
        "fused_add_rms_norm", "x, r, w",
        ROWS + "return normal(generator, rows, cols), normal(generator, rows, cols), "
        "normal(generator, cols)",
        "s = x + r\n    return F.rms_norm(s, s.shape[-1:], w, 1e-6), s",
        HIDDEN[LLAMA], ("x", "r", "w"),
    ),
    Operator(
        "gemma_rms_norm", "x, r, w",
        ROWS + "return normal(generator, rows, cols), normal(generator, rows, cols), "
        "normal(generator, cols)",
        "s = x + r\n    return F.rms_norm(s, s.shape[-1:], 1 + w, 1e-6), s",
        HIDDEN[LLAMA],
    ),
    Operator(
        "rms_norm_gated", "x, g, w",
        ROWS + "return normal(generator, rows, cols), normal(generator, rows, cols), "
        "normal(generator, cols)",
        "return F.rms_norm(x, x.shape[-1:], w, 1e-6) * F.silu(g)", HEADS, ("x", "g", "w"),
    ),
    Operator(
        "l2norm", "x", X,
        "return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)", HEADS, ("x",),
    ),
    Operator(
        "dyt", "x, alpha, gamma, beta",
        ROWS + "return normal(generator, rows, cols), normal(generator, 1), "
        "normal(generator, cols), normal(generator, cols)",
        "return gamma * torch.tanh(alpha * x) + beta", HIDDEN[VIT], ("x", "gamma", "beta"),
    ),
    Operator(
        "swiglu", "a, b", TWO, "return F.silu(a) * b", MLP[LLAMA], ("a", "b"), ("a", "b"),
    ),
    Operator(
        "geglu", "a, b", TWO, 'return F.gelu(a, approximate="tanh") * b', MLP[LLAMA],
        ("a", "b"), ("a", "b"),
    ),
    Operator(
        "swiglu_packed", "x",
        ROWS + "return (normal(generator, rows, 2 * cols),)",
        "a, b = x.chunk(2, -1)\n    return F.silu(a) * b", MLP[LLAMA],
    ),
    Operator(
        "geglu_packed", "x",
        ROWS + "return (normal(generator, rows, 2 * cols),)",
        'a, b = x.chunk(2, -1)\n    return F.gelu(a, approximate="tanh") * b', MLP[LLAMA],
    ),
    Operator("gelu", "x", X, "return F.gelu(x)", MLP[VIT]),
    Operator("relu_squared", "x", X, "return torch.relu(x).square()", MLP[VIT], ("x",)),
    Operator(
        "sparsemax", "x", X,
        # At least float32, and float64 in the judge's oracle.
        "wide = x.to(torch.promote_types(x.dtype, torch.float32))\n"
        "    z = torch.sort(wide, -1, descending=True).values\n"
        "    s = z.cumsum(-1)\n"
        "    k = torch.arange(1, x.shape[-1] + 1, device=x.device)\n"
        "    n = (1 + k * z > s).sum(-1, keepdim=True)\n"
        "    return torch.relu(x - (s.gather(-1, n - 1) - 1) / n).to(x.dtype)",
        HIDDEN[VIT], ("x",),
    ),
    Operator("row_sum", "x", X, "return x.sum(-1)", HIDDEN),
    Operator("row_max", "x", X, "return x.amax(-1)", HIDDEN),
    Operator("var_mean", "x", X, "return torch.var_mean(x, -1)", HIDDEN[LLAMA]),
    Operator("cumsum", "x", X, "return x.cumsum(-1)", HIDDEN[LLAMA]),
    Operator(
        "token_shift", "x",
        'return (normal(generator, 1, case["tokens"], case["cols"]),)',
        "return F.pad(x, (0, 0, 1, -1)) - x",
        ({"name": "llama3_8b", "tokens": TOKENS, "cols": 4096},), ("x",),
    ),
    Operator(
        "mean_pooling", "x",
        'return (normal(generator, 1, case["tokens"], 8, 128),)',
        "return x.unflatten(1, (-1, 64)).mean(2)",
        ({"name": "llama3_8b", "tokens": 4 * TOKENS},), ("x",),
    ),
)  # fmt: skip
