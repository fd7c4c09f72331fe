"""The candidates of the smoke test on a GPU, their problems, settings, and expected verdicts."""

from __future__ import annotations

from pathlib import Path

from benchmarks.gpu import requests
from tilewright.config import Config, load
from tilewright.problems.loader import parse_problem
from tilewright.records import Candidate, Problem, SourceFile

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
        x = 0.9999 * x
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
        x = x * 0.9999
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
