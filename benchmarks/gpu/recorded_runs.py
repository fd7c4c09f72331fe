"""Apply the present rules to recorded A/A runs of a GPU.

`python -m benchmarks.gpu.recorded_runs FILE ...` reads them. A run that made fewer process
replicates than the present rules ask for counts with those that it made.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path

from benchmarks.gpu.aa import Run, bars, runs_of
from tilewright.evaluator.timing.calibration import GPU_DEFAULT, planned_replicates
from tilewright.evaluator.timing.case_timings import CallSize, CaseTimes
from tilewright.evaluator.timing.replicate_policy import DEFAULT_POLICY
from tilewright.evaluator.timing.speedup import between_process_sigma, compare_strict
from tilewright.records import TimingPlan


def times_of(run: Run, replicates: int) -> CaseTimes:
    """Return the times of the first process replicates of a run."""
    edges = [0, *accumulate(run.blocks_per_replicate or _even(run))][: replicates + 1]
    times = CaseTimes(
        run.problem,
        blocks=edges[-1],
        replicate_starts=edges[:-1],
        size=CallSize(run.moved_bytes),
        on_device=True,
    )
    for rows, found in (
        (run.raw_us, times.total_s),
        (run.self_reported_us, times.gpu.self_reported_s),
    ):
        taken = rows[: edges[-1]]
        # The baseline makes the first and the last call of a block.
        found["eager"] = [us / 1e6 for row in taken for us in (row[0], row[3])]
        found["candidate"] = [us / 1e6 for row in taken for us in (row[1], row[2])]
    return times


def _even(run: Run) -> list[int]:
    """Return the blocks of each process replicate of a run that was recorded without them."""
    count = len(run.replicates)
    edges = [round(number * len(run.raw_us) / count) for number in range(count + 1)]
    return [stop - start for start, stop in pairwise(edges)]


def replayed(run: Run) -> Run:
    """Return a run as the rules would have ended it."""
    planned = planned_replicates(run.reference_us or 0.0, run.moved_bytes, on_gpu=True)
    made = min(planned, len(run.replicates))
    while made < len(run.replicates) and _wants_more(times_of(run, made), planned):
        made += 1
    times = times_of(run, made)
    item = compare_strict(times, "eager", between_process_sigma(times, "eager", GPU_DEFAULT), ())
    return replace(
        run,
        log_ratio=math.log(item.speedup),
        low=item.speedup_low,
        high=item.speedup_high,
        replicates=run.replicates[:made],
    )


def _wants_more(times: CaseTimes, planned: int) -> bool:
    sigma = between_process_sigma(times, "eager", GPU_DEFAULT)
    return DEFAULT_POLICY.needs_replicate(
        times, "eager", sigma, planned, TimingPlan().extra_replicates
    )


def main() -> int:
    """Print the bars over all runs, and those over the runs of several replicates."""
    rows = [row for path in sys.argv[1:] for row in json.loads(Path(path).read_text("utf-8"))]
    found = [replayed(run) for run in runs_of(rows) if run.reference_us is not None]
    several = [run for run in found if len(run.replicates) > 1]
    for title, runs in (("all", found), ("several replicates", several)):
        print(f"{title}: {len(runs)} runs")
        for bar in bars(runs):
            print(bar.row())
    return 0


if __name__ == "__main__":
    sys.exit(main())
