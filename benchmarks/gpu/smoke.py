"""Smoke test of the judge on a GPU: verdict, speed and time for one candidate of each kind."""

from __future__ import annotations

import json
import time
from pathlib import Path

from benchmarks.bars import Bar, executor
from benchmarks.gpu.smoke_cases import EXPECTED, LABELLED, cases, settings_of
from tilewright.api import build_request
from tilewright.errors import TilewrightError
from tilewright.executors.local import LocalExecutor
from tilewright.records import Candidate, EvalReport, Problem
from tilewright.scoring.bottlenecks import advice

ADVISED = ("same", "triton", "cuda", "half its own", "module", "traced")
MAX_FIRST_TIMING_RATIO = 3.0
"""Largest ratio of the time spent on timing: first candidate of a problem over its second."""


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
