"""CUDA extensions on a GPU: eight builds run at once while the device judges other candidates."""

from __future__ import annotations

import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.bars import Bar
from benchmarks.gpu.requests import OVERRIDES
from benchmarks.gpu.throughput import PROBLEM
from tilewright.api import build_request
from tilewright.config import load
from tilewright.executors.local import LocalExecutor
from tilewright.problems.loader import parse_problem
from tilewright.records import Candidate, EvalReport, EvalRequest, SourceFile
from tilewright.scoring import bootstrap

BUILDERS, CANDIDATES = 8, 24
REFERENCE = "return torch.nn.functional.silu(x) + x"
SOURCE = '''import torch
from torch.utils.cpp_extension import load_inline

KERNEL = """
#include <torch/extension.h>

__global__ void rows(const float* x, float* y, long count) {{
    for (long at = blockIdx.x * (long){threads} + threadIdx.x; at < count;
         at += gridDim.x * (long){threads}) {{
        const float value = x[at];
        y[at] = value / (1.0f + expf(-value)) + value;
    }}
}}

torch::Tensor silu(torch::Tensor x) {{
    auto y = torch::empty_like(x);
    rows<<<{blocks}, {threads}>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}}
"""
own = load_inline(
    "own", cpp_sources="torch::Tensor silu(torch::Tensor x);", cuda_sources=KERNEL,
    functions=["silu"],
)


def work(x):
    return own.silu(x)
'''


def requests() -> list[EvalRequest]:
    """Return candidates that differ in their grid, so that each is built."""
    settings = load(overrides=OVERRIDES, environ={})
    text = PROBLEM.format(reference=REFERENCE, cols=1024)
    problem = parse_problem(text, "builds/silu", "silu", "builds")
    found = []
    for number in range(CANDIDATES):
        source = SOURCE.format(threads=(128, 256, 512)[number % 3], blocks=512 + 64 * number)
        file = SourceFile(path="candidate.py", text=source)
        made = Candidate(language="cuda", files=(file,), entry="work")
        found.append(build_request(made, problem, settings))
    return found


def run(out: Path) -> list[Bar]:
    """Have all of them judged with `BUILDERS` in flight."""
    home = Path(tempfile.mkdtemp()) / "home"
    start = time.monotonic()
    with LocalExecutor(home, workers=BUILDERS) as local, ThreadPoolExecutor(BUILDERS) as pool:

        def judged(request: EvalRequest) -> tuple[EvalReport, float]:
            report = local.evaluate(request)
            seconds = {stage.name: round(stage.wall_s, 2) for stage in report.stages}
            print(f"{time.monotonic() - start:.1f} {report.verdict} {seconds}", flush=True)
            return report, time.monotonic() - start

        done = list(pool.map(judged, requests()))
    wall = time.monotonic() - start
    return _bars([report for report, _ in done], min(end for _, end in done), wall, out)


def _bars(reports: list[EvalReport], first_s: float, wall_s: float, out: Path) -> list[Bar]:
    builds = [_seconds(report, "build") for report in reports]
    # Every stage after the build holds the lease, except the wait for it.
    held = [_under_lease(report) for report in reports]
    wrong = [report.verdict for report in reports if report.verdict != "correct"]
    parallelism = sum(builds) / wall_s
    busy = sum(held) / max(wall_s - first_s + held[0], 1e-9)
    found = {"wall_s": wall_s, "builds_s": builds, "held_s": held, "first_s": first_s}
    (out / "gpu_builds.json").write_text(json.dumps(found), encoding="utf-8")
    median = bootstrap.median
    print(f"a build {median(builds):.1f} s, the device {median(held):.2f} s", flush=True)
    return [
        Bar("builds: verdicts", "all correct", f"{len(wrong)} not", not wrong),
        Bar("builds: at the same time", ">= 5 of 8", f"{parallelism:.1f}", parallelism >= 5),
        Bar("builds: the device is leased, after the first", "stated", f"{busy:.0%}", held=True),
    ]


def _seconds(report: EvalReport, name: str) -> float:
    return sum(stage.wall_s for stage in report.stages if stage.name == name)


def _under_lease(report: EvalReport) -> float:
    before = ("total", "build", "precompile", "device_wait")
    return sum(stage.wall_s for stage in report.stages if stage.name not in before)
