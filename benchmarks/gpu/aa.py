"""A/A on a GPU: KernelBench references against themselves through the whole evaluator."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.bars import Bar, home
from benchmarks.gpu.requests import DEVICE, OVERRIDES, SHARD, SHARDS
from tilewright.api import build_request
from tilewright.cli.self_comparison import Sample, calibrated, samples_of
from tilewright.config import load
from tilewright.errors import TilewrightError
from tilewright.evaluator.devices.devices import find_device, plan_cores
from tilewright.evaluator.devices.recorded_environment import device_key
from tilewright.evaluator.timing.calibration import GPU_PARTS, write_calibration
from tilewright.executors.local import LocalExecutor
from tilewright.problems.loader import parse_problem
from tilewright.records import Candidate, Comparison, SourceFile
from tilewright.records.codes import UnjudgedReason
from tilewright.scoring import bootstrap, intervals

SHORT_US = 20.0
WORKERS, IN_A_ROW = int(os.environ.get("WORKERS", "2")), int(os.environ.get("IN_A_ROW", "3"))
SPIN = "while True: pass"
FAR = math.log(1.05)
OLD_FIELDS = {
    "said_ratio": "self_reported_ratio",
    "said_us": "self_reported_us",
    "pairs": "replicates",
    "pair_blocks": "blocks_per_replicate",
}
"""Fields of `Run` in files of older versions, and their names now."""


@dataclass(frozen=True)
class Run:
    """One A/A run: `log_ratio` is what should be 0."""

    problem: str
    verdict: str
    detail: str
    reference_us: float | None
    log_ratio: float | None
    low: float | None
    high: float | None
    within: float | None
    moved_bytes: int
    blocks: int
    wall_s: float
    stages: dict[str, float]
    self_reported_ratio: float | None = None
    """The same by the runners' own events."""
    raw_us: tuple[tuple[float, ...], ...] = ()
    self_reported_us: tuple[tuple[float, ...], ...] = ()
    batched_ratio: float | None = None
    """Log ratio of a call of many behind one gate."""
    replicates: tuple[tuple[float, float], ...] = ()
    """Log ratio of each process replicate, and its scatter, as a calibration takes them."""
    blocks_per_replicate: tuple[int, ...] = ()
    reason: str = ""
    """The reason code of an unjudged or failed evaluation."""


def chosen(path: Path, count: int) -> list[dict[str, object]]:
    """Return `count` problems of levels 1 and 2, evenly spread."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["level"] in (1, 2)]
    step = len(rows) / count
    return [rows[int(place * step)] for place in range(count)]


def measure(local: LocalExecutor, row: dict[str, object], number: int) -> Run:
    """Judge one reference against itself."""
    name, code = f"level{row['level']}-{row['problem_id']}", str(row["code"])
    problem = parse_problem(code, f"kernelbench/{name}", name, name)
    source = f"{code}\n\nModelNew = Model\n# {number}\n"
    file = SourceFile(path="candidate.py", text=source)
    candidate = Candidate(language="torch", files=(file,), entry="ModelNew")
    request = build_request(candidate, problem, load(overrides=OVERRIDES, environ={}))
    start = time.monotonic()
    try:
        report = local.evaluate(request)
    except TilewrightError as error:
        wall = time.monotonic() - start
        return _untimed(name, type(error).__name__, str(error), wall, {})
    wall = time.monotonic() - start
    stages = {stage.name: round(stage.wall_s, 3) for stage in report.stages}
    detail = str(getattr(report.outcome, "message", "")) or str([f.code for f in report.findings])
    if not report.comparisons:
        reason = str(getattr(report.outcome, "reason", ""))
        return replace(_untimed(name, report.verdict, detail, wall, stages), reason=reason)
    item = report.comparisons[0]
    rows = intervals.paired_log_ratios(item.raw_us)
    low, high = bootstrap.bootstrap_median_interval(rows)
    return Run(
        name,
        report.verdict,
        "",
        item.baseline_timing.median_us,
        math.log(item.speedup),
        item.speedup_low,
        item.speedup_high,
        (high - low) / 2,
        item.moved_bytes,
        item.blocks,
        wall,
        stages,
        bootstrap.median(intervals.paired_log_ratios(item.self_reported_us))
        if item.self_reported_us
        else None,
        item.raw_us,
        item.self_reported_us,
        _batched(item),
        tuple((made.log_ratio, made.within) for made in samples_of(report)),
        item.blocks_per_process or (item.blocks,),
    )


def _batched(item: Comparison) -> float | None:
    ours, theirs = item.candidate.back_to_back_us, item.baseline_timing.back_to_back_us
    return math.log(theirs / ours) if ours and theirs else None


def _untimed(name: str, verdict: str, detail: str, wall: float, stages: dict[str, float]) -> Run:
    return Run(name, verdict, detail[-300:], None, None, None, None, None, 0, 0, wall, stages)


def line(run: Run) -> str:
    """Return a run as a line."""
    if run.log_ratio is None:
        return f"{run.problem:16} {run.verdict} {run.wall_s:5.1f} s {run.detail} {run.stages}"
    reported = 100 * (run.self_reported_ratio or 0)
    return (
        f"{run.problem:16} {run.verdict:8} {run.wall_s:5.1f} s {run.reference_us:9.1f} us "
        f"{100 * run.log_ratio:+6.2f} +-{100 * (run.within or 0):5.2f} "
        f"self-reported {reported:+6.2f} x{run.blocks}"
    )


def spread(runs: list[Run]) -> tuple[float, float, float]:
    """Return median, 95th percentile and worst of 100 x |log ratio|."""
    values = sorted(100 * abs(run.log_ratio) for run in runs if run.log_ratio is not None)
    return bootstrap.median(values), bootstrap.quantile(values, 0.95), values[-1]


@contextmanager
def busy_cores() -> Iterator[None]:
    """Keep every core busy in the block, where the environment says BUSY."""
    count = len(os.sched_getaffinity(0)) if os.environ.get("BUSY") else 0
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def run(path: Path, budget_s: float, out: Path, count: int = 48) -> list[Bar]:
    """Judge one problem after the other, round and round, while there is time.

    Each worker has problems of its own, and judges each `IN_A_ROW` times: its judge and baseline
    are kept for the next, as they are for anyone who asks for the same problem again.
    """
    rows, stop, runs = chosen(path, count), time.monotonic() + budget_s, list[Run]()
    first = SHARD * len(rows) // SHARDS
    rows = rows[first:] + rows[:first]

    def work(worker: int) -> None:
        own = [row for row in rows[worker::WORKERS] for _ in range(IN_A_ROW)]
        for number, row in enumerate(itertools.cycle(own)):
            if time.monotonic() > stop:
                return
            runs.append(measure(local, row, number))
            print(line(runs[-1]), flush=True)

    with busy_cores(), LocalExecutor(home(), WORKERS) as local, ThreadPoolExecutor(WORKERS) as pool:
        for done in [pool.submit(work, worker) for worker in range(WORKERS)]:
            done.result()
    text = json.dumps([asdict(run) for run in runs])
    (out / "gpu_aa.json").write_text(text, encoding="utf-8")
    return bars(runs)


def calibrate(rows: list[dict[str, object]]) -> list[Bar]:
    """Store the process-to-process variation of the runs as this GPU's calibration."""
    samples = [
        Sample(run.problem, "", run.reference_us, run.moved_bytes, *replicate)
        for run in runs_of(rows)
        if run.reference_us is not None
        for replicate in run.replicates
    ]
    sigmas, counts = calibrated(samples, on_gpu=True)
    device = find_device(DEVICE)
    cores = plan_cores(list(os.sched_getaffinity(0)))
    write_calibration(home(), device_key(cores, device), sigmas)
    return [
        Bar(f"calibration: {name}", "from runs", f"{sigma:.4f} from {count}", count > 0)
        for name, sigma, count in zip(GPU_PARTS, sigmas, counts, strict=True)
    ]


def runs_of(rows: list[dict[str, object]]) -> list[Run]:
    """Return runs from JSON, also from files that older versions wrote."""
    return [
        Run(**{OLD_FIELDS.get(key, key): value for key, value in row.items()})  # type: ignore[arg-type]
        for row in rows
    ]


def bars(runs: list[Run]) -> list[Bar]:
    """Return the bars of a function against itself."""
    unsound = {run.problem for run in runs if run.reason == UnjudgedReason.UNSOUND_PROBLEM}
    others = [run for run in runs if run.problem not in unsound]
    wrong = [run.problem for run in others if run.verdict != "correct"]
    timed = [run for run in runs if run.reference_us is not None]
    seen_text = f"{len(wrong)} not; unsound and left out: {', '.join(sorted(unsound)) or 'none'}"
    found = [Bar("A/A: references judged correct", "all", seen_text, not wrong)]
    parts = (("20 us and more", (0.5, 2.5, 6.0), True), ("below 20 us", (99, 6.0, 99), False))
    for title, limits, wanted in parts:
        chosen_runs = [run for run in timed if ((run.reference_us or 0) >= SHORT_US) is wanted]
        if chosen_runs:
            seen = spread(chosen_runs)
            text = " / ".join(f"{value:.2f}" for value in seen) + f" of {len(chosen_runs)}"
            held = all(value <= limit for value, limit in zip(seen, limits, strict=True))
            limit_text = " / ".join(f"{value:g}" for value in limits)
            found.append(Bar(f"A/A: 100 x |log ratio|, {title}", limit_text, text, held))
    if timed:
        worst_ratio = sum((run.low or 0) <= 1 <= (run.high or 0) for run in timed) / len(timed)
        held = 0.91 <= worst_ratio <= 0.99
        found.append(Bar("A/A: intervals contain 1", "91 to 99 %", f"{worst_ratio:.1%}", held))
        said = [run for run in timed if _says_faster(run)]
        faster = len(said) / len(timed)
        found.append(Bar("A/A: said faster", "<= 4.5 %", f"{faster:.1%}", faster <= 0.045))
        far = [run.problem for run in said if (run.log_ratio or 0) > FAR]
        found.append(Bar("A/A: said faster by more than 5 %", "never", str(len(far)), not far))
    return found


def _says_faster(run: Run) -> bool:
    if run.log_ratio is None or run.low is None or run.high is None:
        return False
    found = intervals.Interval(math.exp(run.log_ratio), run.low, run.high)
    return intervals.decide(found) == "faster"
