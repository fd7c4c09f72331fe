"""Compare KernelBench references with themselves on the CPU: correct, or named with a reason.

python benchmarks/accuracy/reference_check.py --problems kernelbench_v0.jsonl --cheapest 40
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.bars import executor
from tilewright.api import build_request
from tilewright.config import load
from tilewright.errors import TilewrightError
from tilewright.problems.loader import parse_problem
from tilewright.records import Candidate, SourceFile

COST_SCRIPT = """
import sys, time, json, random
import torch
torch.set_num_threads(1)
source = sys.stdin.read()
space = {}
exec(compile(source, "problem.py", "exec"), space)
torch.manual_seed(0)
model = space["Model"](*space["get_init_inputs"]())
inputs = space["get_inputs"]()
with torch.no_grad():
    start = time.perf_counter()
    model(*inputs)
    print(time.perf_counter() - start)
"""


def cost_of(code: str, limit_s: float) -> float | None:
    """Return the seconds of one eager call in a process of its own, or `None` beyond the limit."""
    import subprocess

    try:
        done = subprocess.run(
            [sys.executable, "-c", COST_SCRIPT],
            input=code,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    return float(done.stdout) if done.returncode == 0 and done.stdout.strip() else None


def main() -> int:
    """Print one line per problem and the totals; return 0 if each is correct or named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=Path, required=True)
    parser.add_argument("--cheapest", type=int, default=40)
    parser.add_argument("--costs", type=Path, default=Path("out/self_check_costs.json"))
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.problems.read_text(encoding="utf-8").splitlines()]
    costs = _costs(rows, options.costs)
    known = [row for row in rows if costs.get(_name(row)) is not None]
    chosen = sorted(known, key=lambda row: costs[_name(row)] or 0.0)[: options.cheapest]
    correct, named = 0, []
    with executor() as local:
        for row in chosen:
            name, start = _name(row), time.monotonic()
            reason, speed = _judge(local, row)
            correct += not reason
            if reason:
                named.append(f"{name}: {reason}")
            print(
                f"{name:24} {reason or 'correct':60} {speed} {time.monotonic() - start:5.1f} s",
                flush=True,
            )
    print(f"{correct} of {len(chosen)} correct, {len(named)} named with a reason")
    return 0 if correct + len(named) == len(chosen) else 1


def _name(row: dict[str, object]) -> str:
    return f"level{row['level']}-{row['problem_id']}"


def _costs(rows: list[dict[str, object]], path: Path) -> dict[str, float | None]:
    """Measure one call of each problem once, and store the figures in `path`."""
    costs: dict[str, float | None] = {}
    if path.is_file():
        costs = json.loads(path.read_text(encoding="utf-8"))
    missing = [row for row in rows if row["level"] in (1, 2) and _name(row) not in costs]
    for number, row in enumerate(missing):
        costs[_name(row)] = seconds = cost_of(str(row["code"]), 12.0)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(costs), encoding="utf-8")
        took = "too long, or it fails" if seconds is None else f"{seconds:.3f} s"
        print(f"one call, {number + 1} of {len(missing)}: {_name(row)} {took}", file=sys.stderr)
    return costs


def _judge(local: object, row: dict[str, object]) -> tuple[str, str]:
    """Evaluate a reference as its own candidate; return a reason if not correct, and speed."""
    code = str(row["code"])
    problem = parse_problem(code, f"kernelbench/{_name(row)}", _name(row), _name(row))
    source = code + "\n\nModelNew = Model\n"
    candidate = Candidate(
        language="torch", files=(SourceFile(path="candidate.py", text=source),), entry="ModelNew"
    )
    try:
        report = local.evaluate(build_request(candidate, problem, load(environ={})))  # type: ignore[attr-defined]
    except TilewrightError as error:
        return f"{type(error).__name__}: {str(error)[:200]}", ""
    if report.verdict == "correct":
        if report.speedup is None:
            return "", "not_timed"
        return "", f"{report.speedup:.3f} [{report.speedup_low:.3f}, {report.speedup_high:.3f}]"
    return f"{report.verdict}: {str(getattr(report.outcome, 'message', report.findings))[:300]}", ""


if __name__ == "__main__":
    sys.exit(main())
