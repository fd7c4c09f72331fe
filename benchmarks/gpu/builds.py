"""CUDA extensions on a GPU: one build alone, twelve at once, and all of them again."""

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
from tilewright.records.codes import LabelName
from tilewright.scoring import bootstrap

BUILDERS = 12
ALONE_S, TOGETHER_S, KNOWN_S = 40.0, 120.0, 0.5
"""Bars in seconds: one build alone; `BUILDERS` builds at once, from the first to the last; a build
of a source that was built before."""
BEFORE_THE_LEASE = ("total", "build", "prepare_judge", "precompile", "device_wait")
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
    """Return one candidate more than `BUILDERS`; their grids differ, so that each is built."""
    settings = load(overrides=OVERRIDES, environ={})
    text = PROBLEM.format(reference=REFERENCE, cols=1024)
    problem = parse_problem(text, "builds/silu", "silu", "builds")
    found = []
    for number in range(BUILDERS + 1):
        source = SOURCE.format(threads=(128, 256, 512)[number % 3], blocks=512 + 64 * number)
        file = SourceFile(path="candidate.py", text=source)
        made = Candidate(language="cuda", files=(file,), entry="work")
        found.append(build_request(made, problem, settings))
    return found


def run(out: Path) -> list[Bar]:
    """Judge the first candidate alone, the others at once, and all of them a second time."""
    home = Path(tempfile.mkdtemp()) / "home"
    first, *others = requests()
    with LocalExecutor(home, workers=BUILDERS) as local:
        alone = _judge_at_once(local, [first])
        together = _judge_at_once(local, others)
        known = _judge_at_once(local, [first, *others])
    found = {
        name: [{stage.name: stage.wall_s for stage in report.stages} for report in reports]
        for name, reports in (("alone", alone), ("together", together), ("known", known))
    }
    (out / "gpu_builds.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    return _bars(alone, together, known)


def _judge_at_once(local: LocalExecutor, asked: list[EvalRequest]) -> list[EvalReport]:
    start = time.monotonic()

    def judge(request: EvalRequest) -> EvalReport:
        report = local.evaluate(request)
        seconds = {stage.name: round(stage.wall_s, 2) for stage in report.stages}
        print(f"{time.monotonic() - start:.1f} s: {report.verdict} {seconds}", flush=True)
        return report

    with ThreadPoolExecutor(len(asked)) as pool:
        return list(pool.map(judge, asked))


def _bars(
    alone: list[EvalReport], together: list[EvalReport], known: list[EvalReport]
) -> list[Bar]:
    reports = [*alone, *together, *known]
    wrong = [report.verdict for report in reports if report.verdict != "correct"]
    labels = [label.name for report in reports for label in report.labels]
    whole = labels.count(LabelName.WHOLE_TORCH_HEADER)
    one_s = _build_s(alone[0])
    # Builds of a batch begin within a second of each other, so the longest one ends last.
    longest_s = max(map(_build_s, together))
    again_s = max(map(_build_s, known))
    leased_s = bootstrap.median([_leased_s(report) for report in together])
    return [
        Bar("builds: verdicts", "all correct", f"{len(wrong)} not", not wrong),
        Bar("builds: alone", f"<= {ALONE_S:.0f} s", f"{one_s:.1f} s", one_s <= ALONE_S),
        Bar(
            f"builds: {BUILDERS} at once",
            f"<= {TOGETHER_S:.0f} s",
            f"{longest_s:.1f} s",
            longest_s <= TOGETHER_S,
        ),
        Bar("builds: known source", f"<= {KNOWN_S} s", f"{again_s:.2f} s", again_s <= KNOWN_S),
        Bar("builds: with the whole torch header", "0", str(whole), not whole),
        Bar("builds: median seconds of a lease", "stated", f"{leased_s:.1f} s", held=True),
    ]


def _build_s(report: EvalReport) -> float:
    return sum(stage.wall_s for stage in report.stages if stage.name == "build")


def _leased_s(report: EvalReport) -> float:
    """Return the seconds of the stages after the wait for the device; no build is among them."""
    return sum(stage.wall_s for stage in report.stages if stage.name not in BEFORE_THE_LEASE)
