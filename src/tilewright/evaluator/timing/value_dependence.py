"""Does a candidate take longer where its inputs are not nominal? Pure functions of data."""

from __future__ import annotations

from collections import defaultdict

from tilewright.evaluator.timing.case_timings import CaseTimes
from tilewright.records import Label
from tilewright.records.codes import LabelName
from tilewright.scoring import bootstrap

SLOWER = 1.5
"""Ratio to the time on nominal inputs from which on a label names a variation."""
MIN_CALLS = 2
"""Calls on a variation that must all be slower: one call may have been disturbed."""


def value_labels(times: CaseTimes) -> list[Label]:
    """Return a label for variations on which the candidate alone is slower than on nominal inputs.

    The ratio contains nominal inputs only, so a shortcut for their values would count there.
    """
    found = []
    for variation, ours in _by_variation(times, "candidate").items():
        if len(ours) < MIN_CALLS or min(ours) <= SLOWER:
            continue
        baselines = [name for name in times.total_s if name != "candidate"]
        theirs = [_by_variation(times, name).get(variation, []) for name in baselines]
        if all(calls and bootstrap.median(calls) <= SLOWER for calls in theirs):
            found.append(f"{variation}: {bootstrap.median(ours):.1f} times as long")
    if not found:
        return []
    detail = f"{times.case}: {', '.join(found)} as on nominal inputs"
    return [Label(name=LabelName.VALUE_DEPENDENT_TIME, detail=detail)]


def _by_variation(times: CaseTimes, name: str) -> dict[str, list[float]]:
    """Return an implementation's calls on each variation, in units of its nominal time."""
    nominal, found = times.total_s[name], defaultdict(list)
    if nominal:
        usual_s = bootstrap.median(nominal)
        for variation, seconds in times.varied.get(name, []):
            found[variation].append(seconds / usual_s)
    return found
