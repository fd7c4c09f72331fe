"""Settings of the bars on a GPU, and requests from source texts."""

from __future__ import annotations

import os

from tilewright.api import build_request
from tilewright.config import load
from tilewright.problems.loader import parse_problem
from tilewright.records import Candidate, EvalReport, EvalRequest, SourceFile

DEVICE = os.environ.get("DEVICE", "cuda")
"""On a machine with several GPUs each can run another part: `DEVICE=cuda:1`."""
SHARD, SHARDS = (int(part) for part in os.environ.get("SHARD", "0/1").split("/"))
"""Which part of the work is done here: `SHARD=1/4`; `--merge` makes one table of all parts."""
OVERRIDES = [f"eval.device={DEVICE}", "eval.limits.load_s=60"]


def request(
    problem: str,
    candidate: str,
    name: str,
    *,
    language: str = "torch",
    entry: str = "work",
    more: tuple[str, ...] = (),
    imports: tuple[str, ...] = (),
) -> EvalRequest:
    """Return a request over source texts; `more` are further settings."""
    file = SourceFile(path="candidate.py", text=candidate)
    fields = {"language": language, "files": (file,), "entry": entry, "allow_imports": imports}
    parsed = parse_problem(problem, f"bars/{name}", name, "bars")
    settings = load(overrides=[*OVERRIDES, *more], environ={})
    return build_request(Candidate.model_validate(fields), parsed, settings)


def row(name: str, report: EvalReport) -> dict[str, object]:
    """Return what is kept of a report in the JSON of a bar."""
    first = report.comparisons[0] if report.comparisons else None
    return {
        "name": name,
        "verdict": report.verdict,
        "message": str(getattr(report.outcome, "message", ""))[:300],
        "speedup": report.speedup,
        "low": report.speedup_low,
        "high": report.speedup_high,
        "reference_us": first.baseline_timing.median_us if first else None,
        "blocks": first.blocks if first else None,
        "candidate_us": first.candidate.median_us if first else None,
        "coverage": report.profile.coverage if report.profile else None,
        "own_share": report.profile.self_reported_share if report.profile else None,
        "suppressed_share": report.profile.suppressed_share if report.profile else None,
        "findings": [item.code for item in report.findings],
        "labels": [item.name for item in report.labels],
        "stages": {stage.name: round(stage.wall_s, 4) for stage in report.stages},
    }
