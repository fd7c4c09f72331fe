"""When a process replicate has enough blocks. The width of the interval decides, not the estimate.

docs/explanation/timing-on-cpu.md has the rules as a table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.evaluator.timing.calibration import Calibration
from tilewright.evaluator.timing.case_timings import CaseTimes, charged_times
from tilewright.evaluator.timing.speedup import (
    between_process_sigma,
    half_width,
    typical_log_ratio,
)
from tilewright.evaluator.timing.work_ahead import blocks_to_outlast
from tilewright.records import TimingPlan
from tilewright.scoring.process_replicates import NORMAL_95

SOUGHT_S = 10e-6
"""Seconds below which the half-width of an interval on a CPU need not fall. Every call contains the
time to stop and resume a process, which takes 10 to 20 us. For short calls that is wider than the
planned target, and half of the minimum blocks are enough."""
BETWEEN_SHARE = 0.75
"""Share of the process-to-process variation below which an interval need not fall. No
number of blocks reduces that variation. Both together are then a quarter wider than it is."""
OUTLASTING = 2.0
"""Times the planned seconds that a replicate may take to outlast outputs that may lie ready."""
CHECK_EVERY_BLOCKS = 2
"""Blocks from one computation of the interval to the next."""
MIN_BLOCKS_AT_LIMIT = 6
"""Blocks that are timed even if they take longer than the plan allows."""
MIN_BLOCKS_OF_REPLICATE = 4
"""Blocks of each of several process replicates on a CPU, at least. The scatter of a block is
estimated over all of them."""
MIN_BLOCKS_IF_SLOW, SLOW_FACTOR = 2, 10
"""Blocks that are timed even if they take this many times as long. Some generators need a minute
for an input sample."""


@dataclass(frozen=True)
class StopRule:
    """The rule for one of `planned` process replicates of a case."""

    plan: TimingPlan
    planned: int
    calibration: Calibration
    baselines: Sequence[str]

    def is_over(self, times: CaseTimes, made: int, took_s: float) -> bool:
        """Tell whether a replicate with `made` blocks in `took_s` seconds needs no further one."""
        least, most = self._limits()
        outlasted = blocks_to_outlast(times)
        if made < outlasted and self._shows_gain(times):
            return self._is_late(made, took_s / OUTLASTING)
        if made >= most or self._is_late(made, took_s):
            return True
        soonest = max(least // 2, MIN_BLOCKS_AT_LIMIT)
        if self.planned > 1 and not times.on_device:
            least = soonest = max(least // 2, MIN_BLOCKS_OF_REPLICATE)
        due = made % CHECK_EVERY_BLOCKS == 0 or (made == soonest and self.planned == 1)
        if made < soonest or not due:
            return False
        target = self.plan.target_ci_half_width * math.sqrt(self.planned)
        sought = self._sought_half_width(times)
        if made < least and (times.on_device or sought <= target):
            return False
        return max(half_width(times, name) for name in self.baselines) <= max(target, sought)

    def _shows_gain(self, times: CaseTimes) -> bool:
        """Tell whether the candidate is faster than some baseline, as far as its blocks show."""
        return any(
            typical_log_ratio(times, name) > half_width(times, name) for name in self.baselines
        )

    def _limits(self) -> tuple[int, int]:
        """Return the fewest and the most blocks of the replicate, by the plan."""
        least, most = self.plan.min_blocks, self.plan.max_blocks
        if self.planned > 1:
            least = max(least // self.planned, MIN_BLOCKS_AT_LIMIT)
            most = max(most // self.planned, least)
        return least, most

    def _is_late(self, made: int, took_s: float) -> bool:
        limit_s = self.plan.max_s / self.planned
        fewest = MIN_BLOCKS_IF_SLOW if took_s > SLOW_FACTOR * limit_s else MIN_BLOCKS_AT_LIMIT
        return took_s > limit_s and made >= fewest

    def _sought_half_width(self, times: CaseTimes) -> float:
        """Return the half-width that the interval of a replicate need not fall below."""
        sigma = between_process_sigma(times, self.baselines[0], self.calibration)
        between = BETWEEN_SHARE * NORMAL_95 * sigma
        if times.on_device:
            return between
        shortest_s = min(min(charged_times(times, name)) for name in self.baselines)
        return max(SOUGHT_S / shortest_s, between)
