"""Timing of calls that a queue cannot hold.

`python -m benchmarks.gpu.unqueued_calls [NAME ...]` judges references of many launches against
themselves, in a given number of process replicates. Once the launches are queued before the call
is released, as for all other calls, and once as the judge decides (ADR 40). `KERNELBENCH` names the
problems, a JSON line each.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
from pathlib import Path
from statistics import mean, median, stdev
from types import SimpleNamespace
from typing import Any

from benchmarks.gpu.requests import DEVICE, OVERRIDES
from tilewright.api import build_request
from tilewright.cli.self_comparison import samples_of
from tilewright.config import load
from tilewright.evaluator.devices.devices import find_device
from tilewright.evaluator.pipeline.run import evaluate
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.runners.gpu_runner import QUEUE_TIMEOUT_S
from tilewright.evaluator.timing import blocks, gpu_clock
from tilewright.evaluator.timing.case_timings import LaunchGateMode
from tilewright.problems.loader import parse_problem
from tilewright.records import Candidate, EvalReport, EvalRequest, SourceFile

KNOWN = tuple(f"level3-{number}" for number in (30, 35, 37, 40, 41, 42))
GATES = {
    "queued": lambda *_: LaunchGateMode(QUEUE_TIMEOUT_S),
    "decided": gpu_clock._launch_gate_mode,
}


def request(row: dict[str, Any]) -> EvalRequest:
    """Return a reference as its own candidate."""
    name, code = f"level{row['level']}-{row['problem_id']}", str(row["code"])
    file = SourceFile(path="candidate.py", text=f"{code}\n\nModelNew = Model\n")
    candidate = Candidate(language="torch", files=(file,), entry="ModelNew")
    problem = parse_problem(code, f"kernelbench/{name}", name, name)
    return build_request(candidate, problem, load(overrides=OVERRIDES, environ={}))


def shown(report: EvalReport) -> dict[str, Any]:
    """Return what is kept of a report."""
    if not report.comparisons:
        return {"verdict": report.verdict, "detail": str(report.outcome)[:300]}
    item = report.comparisons[0]
    return {
        "verdict": report.verdict,
        "reference_us": item.baseline_timing.median_us,
        "call_us": item.baseline_timing.call_latency_us,
        "speedup": [item.speedup_low, item.speedup, item.speedup_high],
        "replicates": [[made.log_ratio, made.within] for made in samples_of(report)],
        "blocks": item.blocks_per_process,
        "labels": [f"{label.name}: {label.detail}" for label in report.labels],
        "raw_us": item.raw_us,
        "self_reported_us": item.self_reported_us,
        "timing_s": sum(stage.wall_s for stage in report.stages if stage.name == "timing"),
    }


def line(name: str, gate: str, found: dict[str, Any]) -> str:
    """Return a row of the table."""
    if "replicates" not in found:
        return f"{name} | {gate} | {found}"
    ratios = [100 * ratio for ratio, _ in found["replicates"]]
    within = median(100 * scatter for _, scatter in found["replicates"])
    cells = (
        f"{found['reference_us'] / 1e3:.1f}",
        " ".join(f"{ratio:+.1f}" for ratio in ratios),
        f"{mean(ratios):+.1f}",
        f"{stdev(ratios):.1f}" if len(ratios) > 1 else "-",
        f"{within:.1f}",
        f"{100 * math.log(found['speedup'][1]):+.1f}",
        " ".join(str(count) for count in found["blocks"]),
        f"{found['timing_s']:.0f}",
    )
    return f"{name} | {gate} | " + " | ".join(cells)


def main() -> None:
    """Print a row a problem and gate, as they come."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu.unqueued_calls", description=__doc__
    )
    parser.add_argument("problems", nargs="*", default=list(KNOWN))
    parser.add_argument("--replicates", type=int, default=4)
    parser.add_argument("--gates", nargs="+", choices=list(GATES), default=list(GATES))
    options = parser.parse_args()
    lines = Path(os.environ["KERNELBENCH"]).read_text(encoding="utf-8").splitlines()
    rows = {f"level{row['level']}-{row['problem_id']}": row for row in map(json.loads, lines)}
    out = Path(os.environ.get("OUT", "out"))
    out.mkdir(exist_ok=True)
    # A fixed number of replicates, whatever their times are.
    policy = SimpleNamespace(
        needs_replicate=lambda times, *_: len(times.replicate_starts) < options.replicates
    )
    vars(blocks)["DEFAULT_POLICY"] = policy
    host, found = DeviceHost(Path(tempfile.mkdtemp()), find_device(DEVICE)), dict[str, Any]()
    columns = "ms | each replicate, % | mean | scatter | within | speed-up, % | blocks | s"
    print(f"problem | gate | {columns}")
    try:
        for name in options.problems:
            for gate in options.gates:
                vars(gpu_clock)["_launch_gate_mode"] = GATES[gate]
                report = evaluate(host, request(rows[name]), lambda *_: None, lambda: None)
                found[f"{name}, {gate}"] = shown(report)
                print(line(name, gate, found[f"{name}, {gate}"]), flush=True)
                (out / "gpu_unqueued.json").write_text(json.dumps(found), encoding="utf-8")
    finally:
        host.close()


if __name__ == "__main__":
    main()
