"""Kernels by independent authors: operators of liger-kernel, forward and with gradients.

The environment variable `LIGER` names the folder that holds the package.
"""

from __future__ import annotations

import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.bars import Bar, home
from benchmarks.gpu.requests import SHARD, SHARDS, request, row
from tilewright.errors import TilewrightError
from tilewright.executors.local import LocalExecutor

PROBLEM = """import torch
import torch.nn.functional as F

CASES = [{{"name": "one", "rows": 4096, "cols": 2048}}]
ENTRY = "work"
{grads}

def inputs(case, generator):
    rows, cols = case["rows"], case["cols"]

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    return {inputs}


def reference({names}):
    {reference}
"""
ANSWER = "def is_torch_npu_available():\n    return False\n"
"""liger-kernel asks transformers one question, whose import takes as long as all the rest."""
WORKERS = int(os.environ.get("WORKERS", "2"))
CANDIDATE = """import torch
from liger_kernel.ops.{module} import {function}


def work({names}):
    {body}
"""


@dataclass(frozen=True)
class Operator:
    """One operator: its inputs, what it computes, and how liger-kernel is called for it."""

    module: str
    function: str
    names: str
    inputs: str
    reference: str
    body: str
    grads: tuple[int, ...] = (0,)
    """Which of the inputs get a gradient."""


def _rows(module: str, function: str, reference: str) -> Operator:
    body = f"return {function}.apply(x)"
    return Operator(module, function, "x", "(normal(rows, cols),)", reference, body)


MEAN_SQUARE = "x.float().pow(2).mean(-1, keepdim=True)"
OPERATORS = (
    _rows("softmax", "LigerSoftmaxFunction", "return torch.softmax(x, -1)"),
    _rows("relu_squared", "LigerReLUSquaredFunction", "return torch.relu(x).square()"),
    Operator(
        "layer_norm", "LigerLayerNormFunction", "x, w, b",
        "normal(rows, cols), normal(cols), normal(cols)",
        "return F.layer_norm(x, x.shape[-1:], w, b, 1e-5)",
        "return LigerLayerNormFunction.apply(x, w, b, 1e-5)", (0, 1, 2),
    ),
    Operator(
        "rms_norm", "LigerRMSNormFunction", "x, w", "normal(rows, cols), normal(cols)",
        f"return x * torch.rsqrt({MEAN_SQUARE} + 1e-6) * w",
        "return LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, 'llama', False)", (0, 1),
    ),
    Operator(
        "fused_add_rms_norm", "LigerFusedAddRMSNormFunction", "x, r, w",
        "normal(rows, cols), normal(rows, cols), normal(cols)",
        "s = x + r; return s * torch.rsqrt(s.pow(2).mean(-1, keepdim=True) + 1e-6) * w, s",
        "return LigerFusedAddRMSNormFunction.apply(x, r, w, 1e-6, 0.0, 'llama', False)", (0, 1, 2),
    ),
    Operator(
        "geglu", "LigerGELUMulFunction", "a, b", "normal(rows, cols), normal(rows, cols)",
        "return F.gelu(a, approximate='tanh') * b",
        # Its backward overwrites its inputs.
        "return LigerGELUMulFunction.apply(a.clone(), b.clone())", (0, 1),
    ),
    Operator(
        "swiglu", "LigerSiLUMulFunction", "a, b", "normal(rows, cols), normal(rows, cols)",
        "return F.silu(a) * b",
        "return LigerSiLUMulFunction.apply(a.clone(), b.clone())", (0, 1),
    ),
    Operator(
        "group_norm", "LigerGroupNormFunction", "x, w, b",
        "normal(64, 128, 512), normal(128), normal(128)",
        "return F.group_norm(x, 16, w, b, 1e-5)",
        "return LigerGroupNormFunction.apply(x, w, b, 128, 16, 1e-5)", (0, 1, 2),
    ),
    Operator(
        "poly_norm", "LigerPolyNormFunction", "x, w, b",
        "normal(rows, cols), normal(3), normal(1)[0]",
        "n = lambda v: v * torch.rsqrt(v.pow(2).mean(-1, keepdim=True) + 1e-6)\n"
        "    return w[0] * n(x**3) + w[1] * n(x**2) + w[2] * n(x) + b",
        "return LigerPolyNormFunction.apply(x, w, b, 1e-6, False)", (0, 1),
    ),
    Operator(
        "dyt", "LigerDyTFunction", "x, alpha, gamma, beta",
        "normal(rows, cols), normal(1), normal(cols), normal(cols)",
        "return gamma * torch.tanh(alpha * x) + beta",
        "return LigerDyTFunction.apply(x, alpha, gamma, beta)", (0, 2, 3),
    ),
    Operator(
        "cross_entropy", "LigerCrossEntropyFunction", "x, target",
        "normal(rows, cols), torch.randint(cols, (rows,), generator=generator)",
        "return F.cross_entropy(x, target)",
        # It keeps the gradient where its input was.
        "return LigerCrossEntropyFunction.apply(x.clone(), target, None)[0]",
    ),
    Operator(
        "kl_div", "LigerKLDivLossFunction", "x, y",
        "normal(rows, cols).log_softmax(-1), normal(rows, cols).softmax(-1)",
        "return F.kl_div(x, y, reduction='batchmean')",
        "return LigerKLDivLossFunction.apply(x, y)",
    ),
    Operator(
        "jsd", "LigerJSDFunction", "x, y",
        "normal(rows, cols).log_softmax(-1), normal(rows, cols).log_softmax(-1)",
        "p, q = y.exp(), x.exp(); m = (0.5 * (p + q)).log()\n"
        "    return (0.5 * (p * (y - m) + q * (x - m))).sum() / x.shape[0]",
        "return LigerJSDFunction.apply(x, y)",
    ),
    Operator(
        "tvd", "LigerTVDLossFunction", "x, y",
        "normal(rows, cols).softmax(-1), normal(rows, cols).softmax(-1)",
        "return 0.5 * (x - y).abs().sum() / x.shape[0]",
        "return LigerTVDLossFunction.apply(x, y)",
    ),
    Operator(
        "sparsemax", "LigerSparsemaxFunction", "x", "(normal(rows, 512),)",
        "z = torch.sort(x, -1, descending=True).values; s = z.cumsum(-1)\n"
        "    k = torch.arange(1, x.shape[-1] + 1, device=x.device)\n"
        "    n = (1 + k * z > s).sum(-1, keepdim=True)\n"
        "    return torch.relu(x - (s.gather(-1, n - 1) - 1) / n)",
        "return LigerSparsemaxFunction.apply(x, -1)",
    ),
)  # fmt: skip


def run(out: Path) -> list[Bar]:
    """Judge every operator, forward and with gradients."""
    asked = [(op, backward) for op in OPERATORS[SHARD::SHARDS] for backward in (False, True)]
    with (
        tempfile.TemporaryDirectory() as answers,
        LocalExecutor(home(), WORKERS) as local,
        ThreadPoolExecutor(WORKERS) as pool,
    ):
        utils = Path(answers) / "transformers" / "utils"
        utils.mkdir(parents=True)
        # For a candidate, which is another user.
        for folder in (Path(answers), utils.parent, utils):
            folder.chmod(0o755)
        (utils.parent / "__init__.py").write_text("")
        (utils / "__init__.py").write_text(ANSWER)
        folders = (answers, os.environ.get("LIGER", ""))
        rows = list(pool.map(partial(_judged, local, folders), asked))
    (out / "gpu_liger.json").write_text(json.dumps(rows), encoding="utf-8")
    return bars(rows)


def bars(rows: list[dict[str, object]]) -> list[Bar]:
    """Return what the issue asks of kernels that none of us wrote."""
    correct = [found for found in rows if found["verdict"] == "correct"]
    accused = [found for found in correct if found["findings"]]
    faster = sum(float(str(found["low"] or 0)) > 1 for found in correct)
    slower = sum(float(str(found["high"] or 9)) < 1 for found in correct)
    return [
        Bar("liger: correct", ">= 25", f"{len(correct)} of {len(rows)}", len(correct) >= 25),
        Bar("liger: accused", "none", f"{len(accused)}", not accused),
        Bar("liger: faster, slower", "shown", f"{faster}, {slower}", bool(correct)),
    ]


def _judged(
    local: LocalExecutor, folders: tuple[str, ...], item: tuple[Operator, bool]
) -> dict[str, object]:
    operator, backward = item
    names = operator.names.split(", ")
    grads = f"GRADS = {[names[place] for place in operator.grads]}\n" if backward else ""
    fields = {"inputs": operator.inputs, "names": operator.names}
    problem = PROBLEM.format(**fields, grads=grads, reference=operator.reference)
    made = {"module": operator.module, "function": operator.function, "body": operator.body}
    text = CANDIDATE.format(**made, names=operator.names)
    name = operator.module + (" with gradients" if backward else "")
    asked = request(problem, text, operator.module, language="triton", imports=folders)
    try:
        found = row(name, local.evaluate(asked))
    except TilewrightError as error:
        found = {"name": name, "verdict": type(error).__name__, "message": str(error)[:300]}
    keys = ("name", "verdict", "speedup", "low", "high", "coverage", "findings", "labels")
    print({key: found.get(key) for key in keys}, str(found.get("message"))[:160], flush=True)
    print(f"  {found.get('stages')}", flush=True)
    return found
