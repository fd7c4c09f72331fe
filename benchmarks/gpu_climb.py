"""Judges rewrites of six problems, from naive to tuned, and climbs on what was said of them."""

from __future__ import annotations

import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks import climb
from benchmarks.bars import Bar
from benchmarks.gpu_requests import OVERRIDES
from benchmarks.gpu_stream import PROBLEM, ROWS
from tilewright.api import build_request
from tilewright.config import load
from tilewright.executors.local import LocalExecutor
from tilewright.loop.judging import judgement_of
from tilewright.problems.reader import parse_problem
from tilewright.records import Candidate, SourceFile

COLS = 1024
KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def copied(x, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < count), mask=at < count)


@triton.jit
def rows(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    value = tl.load(x + row * cols + at, mask=inside, other={other})
    {body}
    tl.store(y + row * cols + at, result, mask=inside)


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
    """Judge every rewrite; write the ladders into `climb.json`, and the curves beside it."""
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
            said = [judgement_of(report, "", 0.0) for report in reports]
            shown = [f"{item.verdict} {item.speedup or 0:.2f}" for item in said]
            print(f"{name}: {', '.join(shown)}", flush=True)
            rungs = [
                {"source": source, "judgement": item.model_dump(exclude_none=True)}
                for source, item in zip(sources, said, strict=True)
                if item.verdict == "correct" and item.speedup
            ]
            rows.append({"name": name, "problem": text, "rungs": rungs})
    place = out / "climb.json"
    place.write_text(json.dumps({"device": device, "ladders": rows}, indent=1), encoding="utf-8")
    found = climb.curves_of(climb.read_ladders(place))
    (out / "climb.svg").write_text(climb.plot(found), encoding="utf-8")
    return climb.bars(found)
