"""Smoke test of the judge on a GPU: verdict, speed and time for one candidate of each kind."""

from __future__ import annotations

import json
import time
from pathlib import Path

from benchmarks.bars import Bar, executor
from benchmarks.gpu import requests
from tilewright.api import build_request
from tilewright.config import Config, load
from tilewright.errors import TilewrightError
from tilewright.executors.local import LocalExecutor
from tilewright.problems.loader import parse_problem
from tilewright.records import Candidate, EvalReport, Problem, SourceFile
from tilewright.scoring.bottlenecks import advice

SOFTMAX = """import torch

CASES = [{"name": "wide", "rows": 4096, "cols": 1000}, {"name": "tall", "rows": 32768, "cols": 256}]
ENTRY = "work"


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return torch.softmax(x, dim=-1)
"""
LINEAR = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        return torch.relu(self.norm(self.linear(x)))


def get_inputs():
    return [torch.randn(2048, 1024)]


def get_init_inputs():
    return [1024]
"""
LAUNCHES = """import torch


CASES = [{"name": "steps", "steps": 6000}]
ENTRY = "work"


def inputs(case, generator):
    return torch.randn(64, 64, generator=generator), case["steps"]


def reference(x, steps):
    for _ in range(steps):
        x = 0.5 * x
    return x
"""
KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    value = tl.load(x + row * cols + at, mask=inside, other=-float("inf"))
    value = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * cols + at, value / tl.sum(value, 0), mask=inside)


def launch(x):
    y = torch.empty_like(x)
    softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
"""
TORCH = "import torch\n\n\ndef work(x):\n"
HALVED = """def work(x, steps):
    for _ in range(steps):
        x = x * 0.5
    return x
"""
STALE = """import torch

seen = {}


def work(x):
    key = x.data_ptr()
    if key not in seen:
        seen[key] = torch.softmax(x, -1)
    return seen[key]
"""
GRAPH = """import torch

graphs = {}


def work(x):
    key = (x.shape, x.data_ptr())
    if key not in graphs:
        torch.softmax(x, -1)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = torch.softmax(x, -1)
        graphs[key] = graph, y
    graph, y = graphs[key]
    graph.replay()
    return y
"""
SIDE = """import torch

side = None


def work(x):
    global side
    if side is None:
        side = torch.cuda.Stream()
    y = torch.empty_like(x)
    with torch.cuda.stream(side):
        y.copy_(torch.softmax(x, -1))
    return y
"""
JOINED = """import torch

side = None


def work(x):
    global side
    if side is None:
        side = torch.cuda.Stream()
    y, half = torch.empty_like(x), x.shape[0] // 2
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.softmax(x[:half], -1, out=y[:half])
    torch.softmax(x[half:], -1, out=y[half:])
    torch.cuda.current_stream().wait_stream(side)
    return y
"""
UNJOINED = """import torch

from tilewright.wire.cuda_driver import Driver

Driver.await_context = lambda *_: None
side = None


def work(x):
    global side
    if side is None:
        side = torch.cuda.Stream()
    y = torch.softmax(x, -1)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(900_000)
    return y
"""
LATE = UNJOINED.replace("Driver.await_context = lambda *_: None\n", "")
KEPT = """

kept = {}


def work(x):
    y = torch.empty_like(x)
    rows, cols = x.shape
    if cols not in kept:
        kept[cols] = softmax[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols))
    else:
        block = triton.next_power_of_2(cols)
        kept[cols][(rows, 1, 1)](x, y, cols, block)
    return y
"""
REPLAYED = """

graphs = {}


def work(x):
    if x.shape not in graphs:
        held = x.clone()
        launch(held)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = launch(held)
        graphs[x.shape] = graph, held, y
    graph, held, y = graphs[x.shape]
    held.copy_(x)
    graph.replay()
    return y.clone()
"""
CANDIDATES = {
    "same": ("torch", TORCH + "    return torch.softmax(x, -1)\n"),
    "triton": ("triton", KERNEL + "\n\ndef work(x):\n    return launch(x)\n"),
    "delayed 20 us": (
        "torch",
        TORCH + "    torch.cuda._sleep(36_000)\n    return torch.softmax(x, -1)\n",
    ),
    "synchronises": (
        "torch",
        TORCH + "    y = torch.softmax(x, -1)\n    torch.cuda.synchronize()\n    return y\n",
    ),
    "on the host": ("torch", TORCH + "    return torch.softmax(x.cpu(), -1).cuda()\n"),
    "graph": ("torch", GRAPH),
    "wrong": ("torch", TORCH + "    return torch.softmax(x, -1) * 1.01\n"),
    "half": ("torch", TORCH + "    return torch.softmax(x.half(), -1).float()\n"),
    "stale": ("torch", STALE),
    "side stream": ("torch", SIDE),
    "joined streams": ("torch", JOINED),
    "works on after its end": ("torch", UNJOINED),
    "late side stream": ("torch", LATE),
    "kept kernel": ("triton", KERNEL + KEPT),
    "replayed kernel": ("triton", KERNEL + REPLAYED),
    "half its own": (
        "triton",
        KERNEL + "\n\ndef work(x):\n    torch.cuda._sleep(40_000)\n    return launch(x)\n",
    ),
    "unused kernel": (
        "triton",
        KERNEL + "\n\ndef work(x):\n    launch(x)\n    return torch.softmax(x, -1)\n",
    ),
    "illegal": (
        "triton",
        KERNEL.replace("tl.store(y + row", "tl.store(y + 1000000000000 + row")
        + "\n\ndef work(x):\n    return launch(x)\n",
    ),
    "raises": ("torch", TORCH + "    raise ValueError('no')\n"),
    "hangs": (
        "torch",
        TORCH + "    torch.cuda._sleep(1 << 44)\n    return torch.softmax(x, -1)\n",
    ),
    "after the fault": ("torch", TORCH + "    return torch.softmax(x, -1)  # again\n"),
}
FOLDER = Path(__file__).parent / "candidates"
FILES = {
    "cuda": ("cuda", ("rows.cu", "rows.cuh")),
    "load_inline": ("cuda", ("inline.py", "rows.cuh")),
    "leftover": ("torch", ("leftover.py",)),
}
EXPECTED = {
    "wrong": "incorrect",
    "half": "incorrect",
    "stale": "incorrect",
    "side stream": "incorrect",
    "unused kernel": "rejected",
    "leftover": "rejected",
    "illegal": "failed",
    "raises": "failed",
    "hangs": "failed",
}
LABELLED = {
    "synchronises": "host_synchronizing",
    "launches": "launch_time_included",
    # The device finishes that work before the judge's event, so only its own events are too early.
    "works on after its end": "clock_mismatch",
}
ADVISED = ("same", "triton", "cuda", "half its own", "module", "traced")
MAX_FIRST_TIMING_RATIO = 3.0
"""Largest ratio of the time spent on timing: first candidate of a problem over its second."""
OVERRIDES = [*requests.OVERRIDES, "eval.limits.call_timeout_s=6"]


def cases() -> list[tuple[str, Problem, Candidate]]:
    """Return what is judged, by name."""
    softmax = parse_problem(SOFTMAX, "smoke/softmax", "softmax", "smoke")
    linear = parse_problem(LINEAR, "smoke/linear", "linear", "smoke")
    launches = parse_problem(LAUNCHES, "smoke/launches", "launches", "smoke")
    found = [
        (name, softmax, _candidate(language, text, "work"))
        for name, (language, text) in CANDIDATES.items()
    ]
    for name, (language, paths) in FILES.items():
        files = tuple(
            SourceFile(path=path, text=(FOLDER / path).read_text(encoding="ascii"))
            for path in paths
        )
        fields = {"language": language, "files": files, "entry": "work"}
        found.append((name, softmax, Candidate.model_validate(fields)))
    same = dict(CANDIDATES)["same"][1]
    found += [
        ("against compile", softmax, _candidate("torch", same + "# compile\n", "work")),
        ("publicly", softmax, _candidate("torch", same + "# publicly\n", "work")),
    ]
    model = _candidate("torch", LINEAR + "\n\nModelNew = Model\n", "ModelNew")
    again = _candidate("torch", LINEAR + "\n\nModelNew = Model  # again\n", "ModelNew")
    tuned = _candidate("torch", LINEAR + "\n\nModelNew = Model  # tuned\n", "ModelNew")
    traced = _candidate("triton", dict(CANDIDATES)["triton"][1] + "# traced\n", "work")
    return [
        *found,
        ("module", linear, model),
        ("module again", linear, again),
        ("launches", launches, _candidate("torch", HALVED, "work")),
        ("against max-autotune", linear, tuned),
        ("traced", softmax, traced),
    ]


def _candidate(language: str, text: str, entry: str) -> Candidate:
    file = SourceFile(path="candidate.py", text=text)
    return Candidate.model_validate({"language": language, "files": (file,), "entry": entry})


def settings_of(name: str) -> Config:
    """Return the settings under which a case is judged."""
    more = {
        "against compile": ['eval.baselines=["eager", "compile"]'],
        "against max-autotune": ['eval.baselines=["eager", "max-autotune"]'],
        "publicly": ["eval.protocol=official"],
        "traced": ["eval.timing.max_blocks=12", "eval.timing.min_blocks=6"],
    }
    return load(overrides=OVERRIDES + more.get(name, []), environ={})


def show(
    local: LocalExecutor, name: str, problem: Problem, candidate: Candidate
) -> dict[str, object]:
    """Judge one candidate and print a line of it."""
    start = time.monotonic()
    try:
        request = build_request(candidate, problem, settings_of(name))
        request = request.model_copy(update={"trace": name == "traced"})
        report = local.evaluate(request)
    except TilewrightError as error:
        print(f"{name:16} {type(error).__name__}: {str(error)[-600:]}", flush=True)
        return {"name": name, "verdict": type(error).__name__}
    wall = time.monotonic() - start
    message = str(getattr(report.outcome, "message", ""))[:160].replace("\n", " ")
    speed = ", ".join(
        f"{item.speedup:.4f} [{item.speedup_low or 0:.3f} {item.speedup_high or 0:.3f}] "
        f"{item.baseline_timing.median_us:.2f}/{item.candidate.median_us:.2f} us x{item.blocks}"
        for item in report.comparisons
    )
    stages = " ".join(f"{stage.name} {stage.wall_s:.2f}" for stage in report.stages)
    findings = [item.code for item in report.findings] + [item.name for item in report.labels]
    print(f"{name:16} {report.verdict:10} {wall:5.2f} s {speed} {message} {findings}", flush=True)
    profile = report.profile and report.profile.to_json()
    print(f"{'':16} {stages} {profile}"[:400], flush=True)
    if name == "same":
        print(f"{'':16} {report.environment.host}")
    for sentence in advice(report) if name in ADVISED else ():
        print(f"{'':16} {sentence}")
    for kernel in report.kernels:
        whose = "library" if kernel.library else "own"
        print(f"{'':16} {kernel.launches} x {kernel.name[:60]}: {kernel.total_us:.1f} us, {whose}")
    return {
        "name": name,
        "verdict": report.verdict,
        "labels": [item.name for item in report.labels],
        "report": json.loads(report.to_json()),
    }


def run(match: str, out: Path) -> list[Bar]:
    """Judge all, or those whose name contains `match`; their verdicts must be those expected."""
    rows, missed = [], []
    with executor() as local:
        for name, problem, candidate in cases():
            if match in name:
                rows.append(show(local, name, problem, candidate))
                verdict = str(rows[-1]["verdict"])
                if verdict != EXPECTED.get(name, "correct"):
                    missed.append(f"{name}: {verdict}")
                elif LABELLED.get(name, "") not in str(rows[-1].get("labels")):
                    missed.append(f"{name}: not labelled {LABELLED[name]!r}")
    (out / "gpu_smoke.json").write_text(json.dumps(rows), encoding="utf-8")
    seen = f"{len(rows) - len(missed)} of {len(rows)}"
    bars = [Bar("smoke: verdicts as expected", "all", seen, not missed, {"missed": missed})]
    bars += [_explained(row) for row in rows if row["name"] == "traced"]
    timing = {str(row["name"]): _timing_s(row) for row in rows if "module" in str(row["name"])}
    if all(timing.get(name) for name in ("module", "module again")):
        bars.append(_begun(timing["module"], timing["module again"]))
    return bars


def _timing_s(row: dict[str, object]) -> float:
    """Return the seconds of a report's timing; 0 without one."""
    if "report" not in row:
        return 0.0
    stages = EvalReport.model_validate(row["report"]).stages
    return sum(stage.wall_s for stage in stages if stage.name == "timing")


def _begun(first_s: float, again_s: float) -> Bar:
    """See that nothing is made ready in the timing of a problem's first candidate for seconds.

    A judge that imports a part of torch there takes 2 s; to open a baseline takes 0.3 s.
    """
    seen = first_s / again_s
    what = "smoke: timing of a problem's first candidate, over its second's"
    text, held = f"{seen:.1f}: {first_s:.2f} s", seen <= MAX_FIRST_TIMING_RATIO
    return Bar(what, f"<= {MAX_FIRST_TIMING_RATIO:g}", text, held)


def _explained(row: dict[str, object]) -> Bar:
    """See that all that `explain` shows of a GPU is there."""
    report = EvalReport.model_validate(row.get("report"))
    first = report.comparisons[0].candidate
    parts = {
        "kernels": report.kernels,
        "ceilings": report.ceilings,
        "work": report.work,
        "advice": advice(report),
        "coverage": report.profile,
        "call_us": first.call_latency_us,
        "back_to_back_us": first.back_to_back_us,
        "peak_bytes": first.peak_bytes,
    }
    lacking = [name for name, value in parts.items() if not value]
    return Bar("smoke: what explain shows", "all", f"lacking: {lacking or 'none'}", not lacking)
