"""The interval of a call that waits for its device, on hosts of the same device model.

A device's clock counts no work of the host. A call that waits for the device itself is different:
the work of the host after the wait is in the time. If only one of candidate and baseline waits,
their ratio depends on the host.
"""

from __future__ import annotations

import math

from tilewright.evaluator.timing.case_timings import CaseTimes
from tilewright.scoring.intervals import Interval, combine
from tilewright.scoring.process_replicates import NORMAL_95

HOST_SIGMA = 0.07
"""Standard deviation of the log time of a call that waits, between hosts. Three candidates of the
audit differed by 0.12, 0.09 and 0.03 between two hosts with an H200 each, which gives 0.063
(docs/lab, 2026-11-29)."""


def host_half_widths(times: CaseTimes) -> tuple[float, float]:
    """Return the half-widths of the log ratio, below and above, that come from the host.

    A candidate must not hide that it is slow by a wait, so its own wait raises no upper end.
    """
    mode = times.gpu.launch_gate
    # If the times include launches, a call that is not queued ahead is no sign of a wait.
    if not times.on_device or times.gpu.launching:
        return 0.0, 0.0
    baseline_waits = mode is not None and mode.waits
    if times.candidate_waits == baseline_waits:
        return 0.0, 0.0
    width = NORMAL_95 * HOST_SIGMA
    return width, width if baseline_waits else 0.0


def widened(interval: Interval, below: float, above: float) -> Interval:
    """Return the interval with independent errors of these half-widths of the log ratio added.

    The host's error does not shrink with the number of blocks, process replicates or cases.
    """
    if below == above == 0.0:
        return interval
    estimate = interval.estimate
    down = combine(math.log(estimate / interval.low), below)
    up = combine(math.log(interval.high / estimate), above)
    return Interval(estimate, estimate * math.exp(-down), estimate * math.exp(up))
