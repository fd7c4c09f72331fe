"""Judges rewrites of six problems, naive to tuned, and compares search contexts on the verdicts."""

from __future__ import annotations

import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.bars import Bar
from benchmarks.gpu.requests import OVERRIDES
from benchmarks.gpu.throughput import IMPORTS, PROBLEM, ROW_KERNEL, ROWS
from benchmarks.search import context
from tilewright.api import build_request
from tilewright.config import load
from tilewright.executors.local import LocalExecutor
from tilewright.loop.answer_evaluator import summary_of_report
from tilewright.problems.loader import parse_problem
from tilewright.records import Candidate, SourceFile

COLS = 1024
KERNEL = (
    IMPORTS
    + """

@triton.jit
def copied(x, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < count), mask=at < count)
"""
    + ROW_KERNEL
    + """

def through(x, block):
    y = torch.empty_like(x)
    copied[(triton.cdiv(x.numel(), block),)](x, y, x.numel(), BLOCK=block)
    return y


def work(x):
    {before}
    y = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1]) * {times}
    rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=block, num_warps={warps})
    return {after}
"""
)
RUNGS = [
    {"before": "x = through(x, 32)", "after": "through(y, 32)", "times": 8, "warps": 1},
    {"before": "x = through(x, 256)", "after": "through(y, 256)", "times": 4, "warps": 1},
    {"before": "x = through(x, 1024)", "after": "y", "times": 2, "warps": 2},
    {"before": "pass", "after": "through(y, 1024)", "times": 1, "warps": 4},
    {"before": "pass", "after": "y", "times": 8, "warps": 1},
    {"before": "pass", "after": "y", "times": 4, "warps": 4},
    {"before": "pass", "after": "y", "times": 2, "warps": 8},
    {"before": "pass", "after": "y", "times": 1, "warps": 4},
]


def run(out: Path) -> list[Bar]:
    """Judge every rewrite; write `context_verdicts.json` and the curves."""
    settings = load(overrides=OVERRIDES, environ={})
    rows, device = [], ""
    with LocalExecutor(Path(tempfile.mkdtemp()) / "home", workers=2) as local:
        for name, (reference, other, body) in ROWS.items():
            text = PROBLEM.format(reference=reference, cols=COLS)
            problem = parse_problem(text, f"climb/{name}", name, "climb")
            sources = [KERNEL.format(other=other, body=body, **rung) for rung in RUNGS]
            made = [
                Candidate(
                    language="triton",
                    files=(SourceFile(path="candidate.py", text=source),),
                    entry="work",
                )
                for source in sources
            ]
            requests = [build_request(candidate, problem, settings) for candidate in made]
            with ThreadPoolExecutor(2) as pool:
                reports = list(pool.map(partial(local.evaluate), requests))
            device = reports[0].environment.device_name
            said = [summary_of_report(report, "", 0.0) for report in reports]
            shown = [f"{item.verdict} {item.speedup or 0:.2f}" for item in said]
            print(f"{name}: {', '.join(shown)}", flush=True)
            rungs = [
                {"source": source, "judgement": item.model_dump(exclude_none=True)}
                for source, item in zip(sources, said, strict=True)
                if item.verdict == "correct" and item.speedup
            ]
            rows.append({"name": name, "problem": text, "rungs": rungs})
    place = out / "context_verdicts.json"
    place.write_text(json.dumps({"device": device, "ladders": rows}, indent=1), encoding="utf-8")
    found = context.curves_of(context.read_ladders(place))
    (out / "context.svg").write_text(context.plot(found), encoding="utf-8")
    return context.bars(found)
