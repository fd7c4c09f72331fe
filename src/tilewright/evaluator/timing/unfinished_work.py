"""Whether a call on a device ends when its clock says so: three readings of the same call compared.

The runner places the end of a gated call, and the candidate can change the runner. A caller that
waits for the whole device waits at most for the launches and then for the gated call. Calls that
are queued together take at most as long each as one alone. Work that runs on after the end of a
gated call shows in both. Pure functions of data.
"""

from __future__ import annotations

from tilewright.evaluator.timing.case_timings import CaseTimes
from tilewright.scoring import bootstrap

LATENCY_SLACK_S = 1e-4
"""Seconds by which a caller may wait longer than launches and device take together: to wake up a
process that waits for the device."""
LATENCY_SHARE = 0.5
"""Share of launches and device time by which a caller may wait longer, beyond the baseline's."""
BACK_TO_BACK_SLACK_S = 2.5e-5
"""Seconds that a call may take longer back to back: the second level cache is written back then.
60 MB, the cache of an H200, take 18 us."""
BACK_TO_BACK_SHARE = 0.5
"""Share of a single call's time by which a call back to back may take longer."""


def unfinished_work_s(times: CaseTimes) -> float:
    """Return the seconds of the candidate's work behind the end of its calls; 0: none is seen.

    The candidate may exceed the explained time by as much as a baseline does.
    """
    names = [name for name in times.total_s if name != "candidate"]
    found = [0.0]
    for excess in (_latency_excess_s, _back_to_back_excess_s):
        ours = excess(times, "candidate")
        theirs = [value for value in (excess(times, name) for name in names) if value is not None]
        if ours is not None:
            found.append(ours - max([0.0, *theirs]))
    return max(found)


def _latency_excess_s(times: CaseTimes, name: str) -> float | None:
    """Return the seconds that a caller waits beyond launches and device time; `None`: unknown."""
    gpu = times.gpu
    waited, queued = gpu.call_latency_s.get(name), gpu.queued_s.get(name)
    # A call that waits for its device itself is not queued whole.
    if not waited or not queued or gpu.launching or times.candidate_waits:
        return None
    explained = bootstrap.median(queued) + bootstrap.median(times.total_s[name])
    return bootstrap.median(waited) - (1 + LATENCY_SHARE) * explained - LATENCY_SLACK_S


def _back_to_back_excess_s(times: CaseTimes, name: str) -> float | None:
    seconds = times.gpu.back_to_back_s.get(name)
    if seconds is None or times.gpu.launching:
        return None
    single = bootstrap.median(times.total_s[name])
    return seconds - (1 + BACK_TO_BACK_SHARE) * single - BACK_TO_BACK_SLACK_S
