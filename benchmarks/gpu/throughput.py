"""Throughput on a GPU: Triton candidates in a closed loop, and some in a fresh interpreter each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.bars import Bar
from benchmarks.gpu.requests import DEVICE, OVERRIDES, row
from tilewright.api import build_request
from tilewright.config import load
from tilewright.executors.local import LocalExecutor
from tilewright.problems.loader import parse_problem
from tilewright.records import Candidate, EvalReport, EvalRequest, SourceFile
from tilewright.scoring import bootstrap

IN_FLIGHT, WORKERS = 8, int(os.environ.get("WORKERS", "2"))
WARM, COLD = 6 * WORKERS, int(os.environ.get("COLD", "12"))
PROBLEM = """import torch

CASES = [{{"name": "main", "rows": 8192, "cols": {cols}}}]
ENTRY = "work"


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    {reference}
"""
IMPORTS = """import torch
import triton
import triton.language as tl
"""
ROW_KERNEL = """

@triton.jit
def rows(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    value = tl.load(x + row * cols + at, mask=inside, other={other})
    {body}
    tl.store(y + row * cols + at, result, mask=inside)
"""
"""A kernel with one program for each row."""
KERNEL = (
    IMPORTS
    + ROW_KERNEL
    + """

def work(x):
    y = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1]) * {times}
    rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=block, num_warps={warps})
    return y
"""
)
ROWS = {
    "softmax": (
        "return torch.softmax(x, -1)",
        "-float('inf')",
        "value = tl.exp(value - tl.max(value, 0)); result = value / tl.sum(value, 0)",
    ),
    "rms": (
        "return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)",
        "0.0",
        "result = value * tl.rsqrt(tl.sum(value * value, 0) / cols + 1e-5)",
    ),
    "centre": (
        "return x - x.mean(-1, keepdim=True)",
        "0.0",
        "result = value - tl.sum(value, 0) / cols",
    ),
    "unit": (
        "return x / x.abs().sum(-1, keepdim=True)",
        "0.0",
        "result = value / tl.sum(tl.abs(value), 0)",
    ),
    "silu": (
        "return torch.nn.functional.silu(x) + x",
        "0.0",
        "result = value * tl.sigmoid(value) + value",
    ),
    "softplus": (
        "return torch.log1p(torch.exp(-x.abs())) + torch.relu(x)",
        "0.0",
        "result = tl.log(1 + tl.exp(-tl.abs(value))) + tl.maximum(value, 0.0)",
    ),
}
VARIANTS = [(warps, times) for warps in (1, 2, 4, 8, 16) for times in (1, 2)]


def requests(mark: str) -> list[tuple[str, EvalRequest]]:
    """Return 60 candidates over 6 problems, of which no two follow each other on one problem."""
    settings = load(overrides=OVERRIDES, environ={})
    found = []
    for number, (warps, times) in enumerate(VARIANTS):
        for place, (name, (reference, other, body)) in enumerate(ROWS.items()):
            text = PROBLEM.format(reference=reference, cols=512 + 256 * (place % 3))
            problem = parse_problem(text, f"stream/{name}", name, "stream")
            fields = {"other": other, "body": body, "times": times, "warps": warps}
            source = KERNEL.format(**fields) + f"# {mark} {number}\n"
            file = SourceFile(path="candidate.py", text=source)
            made = Candidate(language="triton", files=(file,), entry="work")
            found.append((f"{name} {warps} x{times}", build_request(made, problem, settings)))
    return found


def run(out: Path, workers: int = WORKERS) -> list[Bar]:
    """Warm up with one candidate a problem, then all of them with `IN_FLIGHT` waiting."""
    home = Path(tempfile.mkdtemp()) / "home"
    with LocalExecutor(home, workers=workers) as local, ThreadPoolExecutor(IN_FLIGHT) as pool:
        judge = partial(_judged, local)
        list(pool.map(judge, requests("warm")[:WARM]))
        start = time.monotonic()
        asked = requests("timed")
        reports = list(pool.map(judge, asked))
        wall = time.monotonic() - start
    rows = [row(name, report) for (name, _), report in zip(asked, reports, strict=True)]
    _show_stages(reports)
    print(f"{len(reports)} in {wall:.1f} s", flush=True)
    cold = [_cold(item) for item in requests("cold")[: COLD * 5 : 5]]
    (out / "gpu_stream.json").write_text(json.dumps({"wall_s": wall, "rows": rows, "cold": cold}))
    return _bars(reports, wall, cold)


def _judged(local: LocalExecutor, item: tuple[str, EvalRequest]) -> EvalReport:
    report = local.evaluate(item[1])
    stages = " ".join(f"{stage.name} {stage.wall_s:.2f}" for stage in report.stages)
    blocks = [comparison.blocks for comparison in report.comparisons]
    print(f"{time.monotonic():.1f} {item[0]:14} {report.verdict} {stages} {blocks}", flush=True)
    return report


def _show_stages(reports: list[EvalReport]) -> None:
    names = list(dict.fromkeys(stage.name for report in reports for stage in report.stages))
    for name in names:
        seconds = [s.wall_s for report in reports for s in report.stages if s.name == name]
        p95 = bootstrap.quantile(seconds, 0.95)
        print(f"{name:12} median {bootstrap.median(seconds):.3f} s, p95 {p95:.3f} s", flush=True)


def _cold(item: tuple[str, EvalRequest]) -> float:
    """Return the seconds of one candidate through a fresh interpreter."""
    request = item[1]
    with tempfile.TemporaryDirectory() as folder:
        problem, candidate = Path(folder) / "problem.py", Path(folder) / "candidate.py"
        problem.write_text(request.problem.source.text)
        candidate.write_text(request.candidate.files[0].text)
        command = [sys.executable, "-m", "tilewright", "eval", str(candidate), "--json"]
        command += ["--problem", str(problem), "--device", DEVICE]
        start = time.monotonic()
        home = {**os.environ, "TILEWRIGHT_HOME": f"{folder}/home"}
        done = subprocess.run(command, capture_output=True, text=True, env=home, cwd=folder)
        wall = time.monotonic() - start
        print(f"cold {item[0]}: {wall:.2f} s, exit {done.returncode}", flush=True)
        if done.returncode:
            print(done.stderr[-500:])
    return wall


def _bars(reports: list[EvalReport], wall: float, cold: list[float]) -> list[Bar]:
    wrong = [report.verdict for report in reports if report.verdict != "correct"]
    rate = len(reports) / wall
    totals = [s.wall_s for report in reports for s in report.stages if s.name == "total"]
    p95 = bootstrap.quantile(totals, 0.95)
    slower = bootstrap.median(cold) * rate
    covered = sum(report.profile is not None for report in reports)
    details = [s.detail for report in reports for s in report.stages if s.name == "precompile"]
    precompiled = sum("its kernels" in detail for detail in details)
    return [
        Bar("stream: verdicts", "all correct", f"{len(wrong)} not", not wrong),
        Bar(
            "stream: with coverage", "all", f"{covered} of {len(reports)}", covered == len(reports)
        ),
        Bar(
            "stream: precompiled",
            "all but a worker's first of a problem",
            f"{precompiled} of {len(reports)}",
            precompiled == len(details) and len(reports) - precompiled <= len(ROWS) * WORKERS,
        ),
        Bar("stream: evaluations a second, warm", ">= 1.0", f"{rate:.2f}", rate >= 1.0),
        Bar("stream: p95 from prepare to verdict", "<= 4 s", f"{p95:.2f} s", p95 <= 4.0),
        Bar("stream: a fresh interpreter each", ">= 6 x slower", f"{slower:.1f} x", slower >= 6.0),
        Bar("stream: cold evaluation", "< 15 s", f"{max(cold):.1f} s", max(cold) < 15.0),
    ]
