"""Loss functions over a vocabulary or over classes."""

from __future__ import annotations

from benchmarks.audit.operators.base import Case, Operator

ROWS = 'rows, cols = case["rows"], case["cols"]\n    '
TARGET = "torch.randint(cols, (rows,), generator=generator)"
LOGITS: tuple[Case, ...] = (
    {"name": "llama3_8b", "rows": 512, "cols": 128256},
    {"name": "vit_small", "rows": 1024, "cols": 1000},
)
DISTRIBUTIONS: tuple[Case, ...] = ({"name": "llama3_8b", "rows": 256, "cols": 128256},)
SHARDED: tuple[Case, ...] = ({"name": "llama3_8b", "rows": 2048, "cols": 16032, "hidden": 4096},)
"""The vocabulary of Llama 3 8B, divided among eight GPUs."""


def _log_probabilities(name: str) -> str:
    return f"{name} = torch.randn(rows, cols, generator=generator).log_softmax(-1).to(DTYPE)"


def _probabilities(name: str) -> str:
    return f"{name} = torch.randn(rows, cols, generator=generator).softmax(-1).to(DTYPE)"


OPERATORS = (
    Operator(
        "cross_entropy", "x, target",
        ROWS + f"return normal(generator, rows, cols), {TARGET}",
        "return F.cross_entropy(x, target)", LOGITS, ("x",), ("x",),
    ),
    Operator(
        "kl_div", "x, y",
        ROWS + f"{_log_probabilities('x')}\n    {_probabilities('y')}\n    return x, y",
        'return F.kl_div(x, y, reduction="batchmean")', DISTRIBUTIONS, ("x",),
    ),
    Operator(
        "jsd", "x, y",
        ROWS + f"{_log_probabilities('x')}\n    {_log_probabilities('y')}\n    return x, y",
        # logaddexp, as the sum of the probabilities may be too small for any type. At least
        # float32: rounding log M to bfloat16 moves the loss by 4 %.
        "wide = torch.promote_types(x.dtype, torch.float32)\n"
        "    log_q, log_p = x.to(wide), y.to(wide)\n"
        "    log_m = torch.logaddexp(log_p, log_q) - 0.6931471805599453\n"
        "    each = log_p.exp() * (log_p - log_m) + log_q.exp() * (log_q - log_m)\n"
        "    return (0.5 * each.sum() / x.shape[0]).to(x.dtype)",
        DISTRIBUTIONS, ("x",),
    ),
    Operator(
        "tvd", "x, y",
        ROWS + f"{_probabilities('x')}\n    {_probabilities('y')}\n    return x, y",
        "return 0.5 * (x - y).abs().sum() / x.shape[0]", DISTRIBUTIONS, ("x",),
    ),
    Operator(
        "fused_linear_cross_entropy", "x, w, target",
        ROWS + 'hidden = case["hidden"]\n'
        "    w = normal(generator, cols, hidden) * hidden**-0.5\n"
        f"    return normal(generator, rows, hidden), w, {TARGET}",
        "return F.cross_entropy(x @ w.T, target)", SHARDED, ("x", "w"),
    ),
)  # fmt: skip
