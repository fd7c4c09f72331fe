"""Bar: a function compared with itself, and with itself plus a known delay.

The bar uses the complete evaluator. The control (`benchmarks.accuracy.aa_control`) does the same in
one process: the same function, sizes and ring of inputs, in ABBA blocks on one core. It shows how
far the machine itself scatters. The bar repeats a run whose control scatters by more than
`MAX_CONTROL_SPREAD`. If the control still does, the bar reports the run as noisy.
`python -m benchmarks.accuracy.aa 600` makes 600 runs; `... FILE.jsonl ...` reads recorded ones.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.bars import Bar, executor, finish
from tilewright.api import build_request
from tilewright.cli.self_comparison import samples_of
from tilewright.config import load
from tilewright.evaluator.processes.sandbox_policy import STEADY_MALLOC
from tilewright.evaluator.timing.calibration import DEFAULT, PLANNED_REPLICATES
from tilewright.evaluator.timing.rounds import MAX_REPLICATE_FACTOR, WIDE_HALF_WIDTH
from tilewright.executors.local import LocalExecutor
from tilewright.records import Baseline, Candidate, EvalRequest, SourceFile
from tilewright.scoring import bootstrap, intervals
from tilewright.scoring.process_replicates import interval_of_centres

MAX_CONTROL_SPREAD = 0.02
LONG_US = 1000.0
REPEATS = 3
CONTROL_BLOCKS = 20
TORCH_BODIES = {
    "sort": "return torch.sort(x, dim=-1).values",
    "cumsum": "return torch.cumsum(x, dim=-1)",
    "softmax": "return torch.softmax(x, dim=-1)",
    "norm": "return torch.nn.functional.layer_norm(x, x.shape[-1:])",
    "matmul": "return x[:, :512] @ x[:512, :512].T.contiguous()",
    "gelu": "return torch.nn.functional.gelu(x)",
}
CPP_BODIES = {
    "exp": "y[i] = expf(-fabsf(x[i]));",
    "tanh": "y[i] = tanhf(x[i]);",
    "softsign": "y[i] = x[i] / (1.0f + fabsf(x[i]));",
    "root": "y[i] = sqrtf(fabsf(x[i])) * x[i];",
    "sine": "y[i] = sinf(x[i]);",
    "gelu": "y[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));",
}
PROBLEM = """import torch

CASES = [{{"name": "one", "rows": {rows}, "cols": 1024}}]
ENTRY = "work"


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    {body}
"""
CPP = """#include "tilewright.h"
#include <math.h>
#include <time.h>

static double now() {{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}}

// Only this value differs in the delayed function. With other instructions, or at other
// addresses, the placement by the compiler would change the time too.
static volatile double delay = {delay};

extern "C" int work(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {{
    double start = now();
    const float* x = (const float*)in[0].data;
    float* y = (float*)out[0].data;
    int64_t n = in[0].shape[0] * in[0].shape[1];
    for (int64_t i = 0; i < n; ++i) {{ {body} }}
    double stop = now() + (now() - start) * delay;
    while (delay > 0 && now() < stop) {{ }}
    return 0;
}}
"""
CPP_REFERENCE = {
    "exp": "return (-x.abs()).exp()",
    "tanh": "return x.tanh()",
    "softsign": "return x / (1.0 + x.abs())",
    "root": "return x.abs().sqrt() * x",
    "sine": "return x.sin()",
    "gelu": "return torch.nn.functional.gelu(x)",
}


@dataclass(frozen=True)
class Run:
    """One A/A run or run with a known delay: logs of the estimate and of its interval's ends."""

    problem: str
    delta: float
    log_ratio: float
    low: float
    high: float
    decision: str
    speedup: float
    control: float
    call_us: float
    moved_bytes: int
    replicates: tuple[tuple[float, float], ...]
    """Log ratio and its own scatter of each process replicate."""
    labels: tuple[str, ...] = ()


def requests(delta: float = 0.0, only: str = "") -> list[tuple[str, EvalRequest]]:
    """Return one request per problem: a candidate, and the same program as its baseline."""
    made = []
    for language in ("cpp", "torch"):
        for name in TORCH_BODIES if language == "torch" else CPP_BODIES:
            title = f"{language} {name}"
            if only not in title or (delta and language == "torch"):
                continue
            body = TORCH_BODIES[name] if language == "torch" else CPP_REFERENCE[name]
            rows = ROWS[title]
            problem_text = PROBLEM.format(rows=rows, body=body)
            made.append((title, _request(problem_text, language, name, delta)))
    return made


ROWS = {
    f"{language} {name}": rows
    for language, table in {
        "cpp": {"exp": 1024, "tanh": 256, "softsign": 6144, "root": 2048, "sine": 384, "gelu": 384},
        "torch": {
            "sort": 64,
            "cumsum": 1920,
            "softmax": 3072,
            "norm": 3072,
            "matmul": 768,
            "gelu": 3072,
        },
    }.items()
    for name, rows in table.items()
}


def _request(problem_text: str, language: str, name: str, delta: float) -> EvalRequest:
    from tilewright.problems.loader import parse_problem

    problem = parse_problem(problem_text, f"aa/{name}", "work", "aa")
    if language == "torch":
        source = f"import torch\n\n\ndef work(x):\n    {TORCH_BODIES[name]}\n"
        mine = theirs = SourceFile(path="work.py", text=source)
    else:
        theirs = SourceFile(path="work.cpp", text=CPP.format(body=CPP_BODIES[name], delay="0.0"))
        delay = f"{delta:.3f}" if delta else "0.0"
        mine = SourceFile(path="work.cpp", text=CPP.format(body=CPP_BODIES[name], delay=delay))
    request = build_request(
        Candidate(language=language, files=(mine,), entry="work"), problem, load(environ={})
    )
    original = Candidate(language=language, files=(theirs,), entry="work")
    baselines = (
        (Baseline(name="eager", kind="eager"),)
        if language == "torch"
        else (Baseline(name="original", kind="candidate", candidate=original),)
    )
    return request.model_copy(update={"baselines": baselines})


class Control:
    """The process that makes the in-process A/A between the runs. Lifetime: the bar."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.accuracy.aa_control"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **STEADY_MALLOC, "OMP_NUM_THREADS": "1"},
        )

    def __call__(self, title: str) -> float:
        """Return the log ratio of one in-process A/A of twenty blocks of the same function."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the control has no pipes")
        self._process.stdin.write(title + "\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End the control."""
        self._process.kill()
        self._process.wait()


def measure(
    local: LocalExecutor, control: Control, title: str, request: EvalRequest, delta: float
) -> Run | None:
    """Evaluate, again while the control is noisy; return `None` if the verdict is not correct."""
    report, scatter, attempts = None, math.inf, 0
    before = abs(control(title))
    while scatter > MAX_CONTROL_SPREAD and attempts < REPEATS:
        report = local.evaluate(request)
        after = abs(control(title))
        scatter, before = max(before, after), after
        attempts += 1
    if report is None or report.verdict != "correct" or not report.comparisons:
        print(f"{title}: {str(report and report.outcome)[:300]}", flush=True)
        return None
    item = report.comparisons[0]
    return Run(
        problem=title,
        delta=delta,
        log_ratio=math.log(item.speedup),
        low=math.log(item.speedup_low or item.speedup),
        high=math.log(item.speedup_high or item.speedup),
        decision=item.conclusion,
        speedup=item.speedup,
        control=scatter,
        call_us=item.candidate.median_us,
        moved_bytes=item.moved_bytes,
        replicates=tuple((made.log_ratio, made.within) for made in samples_of(report)),
        labels=item.labels,
    )


def collect(runs: int, delta: float, out: Path | None, budget_s: float) -> list[Run]:
    """Make about `runs` runs over the problems, or as many as fit the budget."""
    done: list[Run] = []
    stop = time.monotonic() + budget_s
    control = Control()
    try:
        with executor() as local:
            for count in range(runs):
                if time.monotonic() > stop:
                    break
                choices = requests(delta)
                title, request = choices[count % len(choices)]
                run = measure(local, control, title, request, delta)
                if run is None:
                    continue
                done.append(run)
                if out is not None:
                    with out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(run.__dict__) + "\n")
                if len(done) % 12 == 0:
                    print(f"  {len(done)} of {runs} runs at delta {delta:g}", flush=True)
    finally:
        control.close()
    return done


def summarise(runs: list[Run], slow: list[Run]) -> list[Bar]:
    """Return the bars of A/A runs and of runs with a known delay."""
    sizes = [abs(run.log_ratio) for run in runs]
    controls = [run.control for run in runs]
    noisy = sum(run.control > MAX_CONTROL_SPREAD for run in runs)
    quiet = [run for run in runs if run.control <= MAX_CONTROL_SPREAD] or runs
    p95 = bootstrap.quantile([abs(run.log_ratio) for run in quiet], 0.95)
    limit = max(0.03, 2 * bootstrap.quantile([run.control for run in quiet], 0.95))
    covered = sum(run.low <= 0 <= run.high for run in quiet) / len(quiet)
    wrong = [run for run in runs if run.decision == "faster" and run.speedup > 1.05]
    false = sum(run.control <= MAX_CONTROL_SPREAD for run in wrong) / len(quiet)
    short = sum(run.call_us < LONG_US for run in quiet)
    found = [run for run in slow if run.control <= MAX_CONTROL_SPREAD]
    hits = sum(run.decision == "slower" for run in found)
    rate = hits / len(found) if found else 0.0
    details = {
        "runs": len(runs),
        "noisy_runs": noisy,
        "median": bootstrap.median(sizes),
        "control_p95": bootstrap.quantile(controls, 0.95),
        "median_call_us": bootstrap.median([run.call_us for run in runs]),
    }
    return [
        Bar(
            "A/A: p95 of |log ratio|",
            f"<= {limit:.3f}",
            f"{p95:.4f} ({len(quiet)} quiet runs, {short} of calls under 1 ms)",
            p95 <= limit,
            details,
        ),
        Bar("A/A: intervals contain 1", "91 to 99 %", f"{covered:.1%}", 0.91 <= covered <= 0.99),
        Bar(
            "A/A: false 'faster' above 5 %",
            "<= 0.5 % of quiet runs",
            f"{false:.2%} ({len(wrong) / len(runs):.2%} of all, {noisy} of {len(runs)} noisy)",
            false <= 0.005,
        ),
        Bar(
            "known slow-downs of 5 and 10 %",
            ">= 95 % found",
            f"{rate:.1%} of {len(found)}",
            rate >= 0.95,
        ),
    ]


def sigmas(runs: list[Run]) -> dict[str, float]:
    """Return the robust scatter of the log ratio per problem, for the calibration."""
    table: dict[str, list[float]] = {}
    for run in runs:
        table.setdefault(run.problem, []).append(run.log_ratio)
    return {
        name: 1.4826 * bootstrap.median([abs(value) for value in values])
        for name, values in table.items()
    }


def run(
    only: str = "",  # noqa: ARG001 - one table
    *,
    runs: int = 600,
    slow_runs: int = 60,
    budget_s: float = 2400.0,
) -> list[Bar]:
    """Make the runs and return the bars; runs go to `out/aa-DATE.jsonl`."""
    out = Path("out")
    out.mkdir(exist_ok=True)
    date = time.strftime("%Y%m%d-%H%M%S")
    quiet = collect(runs, 0.0, out / f"aa-{date}.jsonl", budget_s)
    slow: list[Run] = []
    for delta in (0.05, 0.10):
        slow += collect(slow_runs // 2, delta, out / f"delta-{date}.jsonl", budget_s / 4)
    for name, value in sigmas(quiet).items():
        print(f"  scatter {name:16} {value:.4f}", flush=True)
    return summarise(quiet, slow)


def by_present_rule(run: Run) -> Run:
    """Return a recorded run with the replicates that the present rule would have made.

    Replicates are made one after another until their interval is narrow. So a rule that needs
    fewer would have made the first of the recorded ones.
    """
    made = len(run.replicates)
    if made < 2:
        return run
    stop = next(
        (n for n in range(PLANNED_REPLICATES, made) if _wide(run, n) <= WIDE_HALF_WIDTH), made
    )
    found = _over(run, stop)
    return replace(
        run,
        log_ratio=math.log(found.estimate),
        low=math.log(found.low),
        high=math.log(found.high),
        decision=intervals.decide(found),
        speedup=found.estimate,
        replicates=run.replicates[:stop],
    )


def _over(run: Run, count: int) -> intervals.Interval:
    sigma = DEFAULT.sigma(run.call_us, run.moved_bytes)
    return interval_of_centres([(at, within**2) for at, within in run.replicates[:count]], sigma)


def _wide(run: Run, count: int) -> float:
    found = _over(run, count)
    return math.log(found.high / found.low) / 2


def _recorded(row: dict[str, Any]) -> Run:
    """Return a run from JSON; files of schema version 1 have `pairs`."""
    if "pairs" in row:
        row["replicates"] = row.pop("pairs")
    return Run(**row)


def recorded(files: list[Path]) -> list[Bar]:
    """Return the bars of recorded uncalibrated runs under the present rule."""
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    made = [_recorded(json.loads(line)) for line in lines]
    runs = [by_present_rule(run) for run in made if "uncalibrated" in run.labels]
    most = MAX_REPLICATE_FACTOR * PLANNED_REPLICATES
    more = sum(
        PLANNED_REPLICATES <= len(run.replicates) < most
        and _wide(run, len(run.replicates)) > WIDE_HALF_WIDTH
        for run in runs
    )
    print(
        f"{len(made) - len(runs)} calibrated runs left out; {more} would have more replicates now"
    )
    return summarise([run for run in runs if not run.delta], [run for run in runs if run.delta])


if __name__ == "__main__":
    if sys.argv[1:] and not sys.argv[1].isdigit():
        found = recorded([Path(name) for name in sys.argv[1:]])
    else:
        count = int(sys.argv[1]) if len(sys.argv) > 1 else 600
        found = run(runs=count, slow_runs=max(count // 10, 12))
    sys.exit(finish(found))
