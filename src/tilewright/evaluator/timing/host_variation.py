"""The interval of a call that waits for its device, on other hosts of the same device model.

A device's clock counts no work of the host. A call that waits for the device itself is different:
what the host does after the wait is in the time. If only one of candidate and baseline waits,
their ratio depends on the host.
"""

from __future__ import annotations

import math

from tilewright.evaluator.timing.case_timings import CaseTimes
from tilewright.scoring.intervals import Interval
from tilewright.scoring.process_replicates import NORMAL_95

HOST_SIGMA = 0.07
"""Standard deviation of the log time of a call that waits, between hosts. Three candidates of the
audit differed by 0.12, 0.09 and 0.03 between two hosts with an H200 each (docs/lab, 2026-11-29)."""


def on_other_hosts(interval: Interval, times: CaseTimes) -> Interval:
    """Return the interval, wider if it depends on the host. The estimate stays as it is.

    More process replicates on the same host do not make this part smaller.
    """
    mode = times.gpu.launch_gate
    baseline_waits = mode is not None and mode.waits
    if not times.on_device or times.candidate_waits == baseline_waits:
        return interval
    below, above = (
        math.hypot(math.log(end / interval.estimate), NORMAL_95 * HOST_SIGMA)
        for end in (interval.low, interval.high)
    )
    estimate = interval.estimate
    return Interval(estimate, estimate * math.exp(-below), estimate * math.exp(above))
