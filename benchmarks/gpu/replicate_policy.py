"""Claims that the rules for process replicates make of process-to-process variation alone.

`python -m benchmarks.gpu.replicate_policy` simulates them without a device. Implementations differ
by a true ratio. Each process replicate has a normal offset of the size that H200s showed
(docs/lab/2026-11-22-gpu-process-variation.md).
"""

from __future__ import annotations

import math
import random
import sys

from tilewright.evaluator.timing.calibration import GPU_DEFAULT, planned_replicates
from tilewright.evaluator.timing.case_timings import CaseTimes
from tilewright.evaluator.timing.replicate_policy import DEFAULT_POLICY
from tilewright.evaluator.timing.speedup import between_process_sigma, compare_strict
from tilewright.records import Comparison, TimingPlan

RUNS, BLOCKS = 1000, 4
SCATTER = 0.01
"""Scatter of one block, in addition to the process-to-process variation."""
OFFSET_US = ((9.0, 0.4), (math.inf, 0.5))
SHARE = ((25.0, 0.0), (130.0, 0.011), (math.inf, 0.001))
"""Difference of two processes: a time, and a share of it, for calls up to this long."""
KINDS = ((6.0, 1.0), (12.0, 1.0), (19.0, 1.0), (30.0, 1.0), (60.0, 1.0), (300.0, 1.0),
         (12.0, 1.05), (12.0, 1.09), (12.0, 1.15), (15.0, 1.05), (15.0, 1.09),
         (60.0, 1.05), (60.0, 1.15))  # fmt: skip


def judged(sample: random.Random, call_us: float, ratio: float) -> tuple[Comparison, int]:
    """Return the final comparison, and its number of process replicates."""
    offset_us, share = (next(by for most, by in table if call_us <= most)
                      for table in (OFFSET_US, SHARE))  # fmt: skip
    noise = math.hypot(offset_us / call_us, share)
    times = CaseTimes("one", on_device=True, total_s={"eager": [], "candidate": []})
    planned, more = planned_replicates(call_us, 0, on_gpu=True), TimingPlan().extra_replicates
    while len(times.replicate_starts) < planned or DEFAULT_POLICY.needs_replicate(
        times, "eager", between_process_sigma(times, "eager", GPU_DEFAULT), planned, more
    ):
        times.replicate_starts.append(times.blocks)
        off = sample.gauss(math.log(ratio), noise)
        for _ in range(2 * BLOCKS):
            times.total_s["eager"].append(call_us / 1e6 * math.exp(sample.gauss(off, SCATTER)))
            times.total_s["candidate"].append(call_us / 1e6)
        times.blocks += BLOCKS
    sigma = between_process_sigma(times, "eager", GPU_DEFAULT)
    return compare_strict(times, "eager", sigma, ()), len(times.replicate_starts)


def main() -> int:
    """Print a line for each length of a call and true ratio."""
    print("call us | true | contain it % | faster % | by over 5 % | p95 | worst | replicates")
    for call_us, ratio in KINDS:
        sample = random.Random(0)
        found = [judged(sample, call_us, ratio) for _ in range(RUNS)]
        items = [item for item, _ in found]
        worst_ratio = sum((i.speedup_low or 0) <= ratio <= (i.speedup_high or 0) for i in items)
        faster = [item for item in items if item.conclusion == "faster"]
        far = sum(item.speedup > 1.05 for item in faster)
        off = sorted(100 * abs(math.log(item.speedup / ratio)) for item in items)
        print(
            f"{call_us:5g} | {ratio:4} | {100 * worst_ratio / RUNS:.1f}"
            f" | {100 * len(faster) / RUNS:.1f}"
            f" | {100 * far / RUNS:.1f} | {off[RUNS * 95 // 100]:.1f} | {off[-1]:.1f}"
            f" | {sum(count for _, count in found) / RUNS:.2f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
