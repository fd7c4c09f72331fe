"""When a measurement is repeated in fresh processes: process replicates beyond those planned.

The same code differs between two processes, by a share that stays the same for their whole lives
(ADR 42). More blocks in the same processes do not reduce this variation; more processes do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.evaluator.timing.calibration import GPU_REPLICATES
from tilewright.evaluator.timing.case_timings import CaseTimes, is_short
from tilewright.evaluator.timing.speedup import estimated_interval
from tilewright.scoring import intervals
from tilewright.scoring.process_replicates import MAX_REPLICATES


@dataclass(frozen=True)
class ReplicatePolicy:
    """The constants of the rule, and the rule itself. Logarithms of ratios throughout.

    ADR 42 has the history of each value.
    """

    noise_ceiling_log: float = math.log(1.3)
    """A smaller |log ratio| may be noise; divided by sqrt(n) for n replicates. Larger values cost
    replicates, smaller ones believe false differences."""
    noise_ceiling_sigmas: float = 4.0
    """The same in standard deviations between processes; the larger of the two limits holds."""
    short_ceiling_sigmas: float = 5.0
    """The only limit for calls below `GPU_SHORT_US`. `noise_ceiling_log` exists for single problems
    with longer calls, whose time depends on the place of their memory."""
    negligible_sigmas: float = 0.75
    """A difference below this many standard deviations needs no further replicate."""
    negligible_min: float = 0.0075
    """A |log ratio| below this never needs a further replicate, however small sigma is."""
    negligible_max: float = 0.03
    """A |log ratio| above this always needs one, however large sigma is."""
    claimed_factor: int = 2
    """A claimed speed-up or slow-down may take this many times the extra replicates."""

    def may_be_noise(self, times: CaseTimes, baseline: str, sigma: float) -> bool:
        """Tell whether the replicates so far show a difference that two processes may explain.

        A difference inside its interval counts too, unless it is negligible: the report shows the
        estimate as well as the interval.
        """
        distance, claimed = _distance_from_one(times, baseline, sigma)
        negligible = max(self.negligible_sigmas * sigma, self.negligible_min)
        if not claimed and distance <= min(negligible, self.negligible_max):
            return False
        ceiling = max(self.noise_ceiling_log, self.noise_ceiling_sigmas * sigma)
        made = len(times.replicate_starts) or 1
        # The first process may be the one that ran the correctness checks.
        if is_short(times, baseline) and made >= GPU_REPLICATES:
            ceiling = self.short_ceiling_sigmas * sigma
        return distance < ceiling / math.sqrt(made)

    def needs_replicate(
        self, times: CaseTimes, baseline: str, sigma: float, planned: int, extra: int
    ) -> bool:
        """Tell whether a GPU needs one more replicate beyond those planned.

        At most `extra` replicates follow, and `claimed_factor` times as many if the replicates
        show a difference. An interval of 95 % does so for one in forty calls that do not differ.
        """
        _, claimed = _distance_from_one(times, baseline, sigma)
        most = planned + (self.claimed_factor if claimed else 1) * extra
        made = len(times.replicate_starts)
        return made < min(most, MAX_REPLICATES) and self.may_be_noise(times, baseline, sigma)


DEFAULT_POLICY = ReplicatePolicy()


def claims_difference(times: CaseTimes, baseline: str, sigma: float) -> bool:
    """Tell whether the interval of the replicates so far excludes 1."""
    return _distance_from_one(times, baseline, sigma)[1]


def _distance_from_one(times: CaseTimes, baseline: str, sigma: float) -> tuple[float, bool]:
    """Return the estimate's |log ratio|, and whether its interval excludes 1."""
    found = estimated_interval(times, baseline, sigma)
    claimed = intervals.decide(found) != "no measurable difference"
    return abs(math.log(found.estimate)), claimed
