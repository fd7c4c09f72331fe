"""240 pairs of a problem and a candidate in KernelBench's format, written for these tests."""

from __future__ import annotations

import json
from pathlib import Path

PROBLEM = """
import torch


class Model(torch.nn.Module):
    def __init__(self, shift):
        super().__init__()
        self.shift = shift
        self.linear = torch.nn.Linear(64, 64)

    def forward(self, x):
        return {body}


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return [2.0]
"""
BODIES = (
    *("torch.relu(x) + self.shift", "x * x + self.shift", "torch.tanh(x) * self.shift"),
    *("torch.sigmoid(x)", "torch.nn.functional.gelu(x)", "torch.softmax(x, dim=-1)"),
    *("torch.log_softmax(x, dim=0)", "torch.cumsum(x, dim=1)", "x @ x.T"),
    *("x.sum(dim=1, keepdim=True) * x", "x.amax(dim=1)", "x.mean(dim=0) + self.shift"),
    *("torch.exp(x)", "x.abs().sqrt()", "torch.sort(x, dim=1).values"),
    *("x.transpose(0, 1).contiguous() * self.shift", "self.linear(x)"),
    *("torch.relu(self.linear(x))", "torch.nn.functional.layer_norm(x, (64,))"),
    "torch.nn.functional.normalize(x, dim=1)",
)
"""The expression that `forward` of each problem returns."""
WRAPPED = """
{first}

class {name}(Model):
    def __init__(self, *args):
        super().__init__(*args)
        {init}

    def forward(self, *args):
        {called}
        out = super().forward(*args)
        return {out}
"""


def _wrapped(
    out: str = "out",
    *,
    name: str = "ModelNew",
    first: str = "",
    init: str = "pass",
    called: str = "pass",
) -> str:
    return WRAPPED.format(name=name, first=first, init=init, called=called, out=out)


CANDIDATES: dict[str, str] = {
    "copy": _wrapped(),
    "within the tolerance": _wrapped("out * (1 + 2e-6)"),
    "outside of the tolerance": _wrapped("out * 1.003 + 3e-3"),
    "wrong": _wrapped("out * 1.5 + 1"),
    "shape": _wrapped("out.unsqueeze(0).expand(2, *out.shape)"),
    "dtype": _wrapped("out.double()"),
    "exception in a call": _wrapped(called="raise ValueError('boom')"),
    "syntax": "\ndef broken(:\n",
    "no ModelNew": _wrapped(name="Other"),
    "exception at import": _wrapped(first="raise ValueError('boom')"),
    "RuntimeError in the constructor": _wrapped(init="raise RuntimeError('no device')"),
    "TypeError in the constructor": _wrapped(init="raise TypeError('no argument')"),
}
KINDS = tuple(CANDIDATES)


def write_pairs(folder: Path, rows: Path, problems: int = len(BODIES)) -> None:
    """Write the first problems into `rows`, and a generation for each pair into `folder`."""
    folder.mkdir()
    lines = []
    for number, body in enumerate(BODIES[:problems], start=1):
        source = PROBLEM.format(body=body)
        lines.append(json.dumps({"level": 1, "problem_id": number, "code": source}) + "\n")
        model = source.partition("\ndef get_inputs")[0]
        for sample, text in enumerate(CANDIDATES.values()):
            path = folder / f"level_1_problem_{number}_sample_{sample}_kernel.py"
            path.write_text(text if "broken(" in text else model + text, encoding="utf-8")
    rows.write_text("".join(lines), encoding="utf-8")
