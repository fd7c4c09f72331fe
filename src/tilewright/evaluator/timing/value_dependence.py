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
    found = [
        f"{variation}: {bootstrap.median(ours):.1f} times as long"
        for variation, ours in _slower_variations(times).items()
    ]
    if not found:
        return []
    detail = f"{times.case}: {', '.join(found)} as on nominal inputs"
    return [Label(name=LabelName.VALUE_DEPENDENT_TIME, detail=detail)]


def share_of_gain(times: CaseTimes, baseline: str) -> float:
    """Return the ratio of all calls over that of calls on nominal inputs, at most 1.

    It is 1 unless the candidate is slower on variations. Such a candidate may do there what it
    saves on nominal inputs, such as to fill the outputs of later calls (ADR 74). A baseline that is
    as slow there raises the ratio as much.
    """
    if not _is_slower(times, "candidate"):
        return 1.0
    theirs, ours = (sum(times.total_s[name]) for name in (baseline, "candidate"))
    their_varied, our_varied = (
        sum(seconds for _, seconds in times.varied.get(name, ()))
        for name in (baseline, "candidate")
    )
    return min(((theirs + their_varied) / (ours + our_varied)) / (theirs / ours), 1.0)


def _is_slower(times: CaseTimes, name: str) -> bool:
    """Tell whether an implementation's calls on variations are slower in the mean.

    A single one of them may do the work of hundreds of other calls, so that none is noise.
    """
    calls = [seconds for _, seconds in times.varied.get(name, ())]
    if not calls or not times.total_s[name]:
        return False
    return sum(calls) / len(calls) > SLOWER * bootstrap.median(times.total_s[name])


def _slower_variations(times: CaseTimes) -> dict[str, list[float]]:
    """Return the variations on which the candidate alone is slower, with its relative times."""
    found = {}
    for variation, ours in _by_variation(times, "candidate").items():
        if len(ours) < MIN_CALLS or min(ours) <= SLOWER:
            continue
        baselines = [name for name in times.total_s if name != "candidate"]
        theirs = [_by_variation(times, name).get(variation, []) for name in baselines]
        if all(calls and bootstrap.median(calls) <= SLOWER for calls in theirs):
            found[variation] = ours
    return found


def _by_variation(times: CaseTimes, name: str) -> dict[str, list[float]]:
    """Return an implementation's calls on each variation, in units of its nominal time."""
    nominal, found = times.total_s[name], defaultdict(list)
    if nominal:
        usual_s = bootstrap.median(nominal)
        for variation, seconds in times.varied.get(name, []):
            found[variation].append(seconds / usual_s)
    return found
