"""From the times of a case to its comparison: process replicates, interval, conclusion. Pure."""

from __future__ import annotations

import math
from itertools import pairwise

from tilewright.evaluator.timing.calibration import Calibration
from tilewright.evaluator.timing.case_timings import (
    CaseTimes,
    charged_times,
    undetectable_work_s,
)
from tilewright.evaluator.timing.concentrated_work import concentrated_work
from tilewright.evaluator.timing.host_variation import host_half_widths, widened
from tilewright.evaluator.timing.value_dependence import share_of_gain
from tilewright.evaluator.timing.work_ahead import uncounted_fill_s
from tilewright.records import Comparison, Timing
from tilewright.records.codes import LabelName
from tilewright.scoring import bootstrap, intervals
from tilewright.scoring.paired_times import PairedTimes, paired
from tilewright.scoring.process_replicates import (
    NORMAL_95,
    median_variances,
    replicates_interval,
)
from tilewright.wire.frames import Fields

Row = tuple[float, float, float, float]
"""A block: baseline, candidate, candidate, baseline, in microseconds."""


def half_width(times: CaseTimes, baseline: str) -> float:
    """Return half the width of the 95 % interval of the log ratio in the newest replicate.

    The blocks of earlier replicates show how far one block scatters.
    """
    groups = map(intervals.paired_log_ratios, _by_replicate(times, _rows(times, baseline)))
    return NORMAL_95 * math.sqrt(median_variances(list(groups))[-1])


def typical_log_ratio(times: CaseTimes, baseline: str) -> float:
    """Return the median log ratio of the blocks in the newest replicate."""
    newest = _by_replicate(times, _rows(times, baseline))[-1]
    return bootstrap.median(intervals.paired_log_ratios(newest))


def between_process_sigma(times: CaseTimes, baseline: str, calibration: Calibration) -> float:
    """Return the standard deviation of the log ratio of the same code in two processes."""
    if not times.on_device:
        median_us = bootstrap.median(times.total_s[baseline]) * 1e6
        return calibration.sigma(median_us, times.moved_bytes)
    theirs, ours = (
        bootstrap.median(charged_times(times, name)) * 1e6 for name in (baseline, "candidate")
    )
    return calibration.sigma(theirs, times.moved_bytes, ours)


def compare_official(times: CaseTimes, baseline: str, labels: tuple[str, ...]) -> Comparison:
    """Return the comparison with one baseline by the published rule: means, no interval."""
    calls = (times.total_s[name] for name in (baseline, "candidate"))
    shown = PairedTimes(*(1e6 * sum(values) / len(values) for values in calls))
    return Comparison(
        **_measured(times, baseline, _rows(times, baseline), shown, official=True),
        speedup=shown.baseline_us / shown.candidate_us,
        speedup_low=None,
        speedup_high=None,
        conclusion="no interval",
        labels=labels,
    )


def compare_strict(
    times: CaseTimes,
    baseline: str,
    sigma: float,
    labels: tuple[str, ...],
    *,
    any_host: bool = True,
) -> Comparison:
    """Return the comparison of the candidate with one baseline on a timed case.

    The lower end of the interval allows for outputs that lay ready, and for work in calls on input
    variations. On a CPU it allows for undetectable work of the candidate. It also allows for work
    of many calls in a few long ones. If these are certain, the speed-up does too. For `any_host`
    it allows for the variation between hosts, if only one implementation waits for the device.
    `sigma` is the standard deviation of the log ratio between processes, of the calibration.
    """
    rows = raw = _rows(times, baseline)
    interval = estimated_interval(times, baseline, sigma)
    low, high = interval.low, interval.high
    if times.on_device:
        raw = _paired(times.total_s[baseline], times.total_s["candidate"])
        by_judge = estimated_interval(times, baseline, sigma, raw)
        low, high = min(low, by_judge.low), max(high, by_judge.high)
    else:
        call_s = bootstrap.median(charged_times(times, "candidate"))
        low *= call_s / (call_s + undetectable_work_s(times, baseline))
    # Only a gain may rest on outputs that lay ready, or on calls that no ratio contains.
    total_s, counted_low = sum(times.total_s["candidate"]), low
    elsewhere = share_of_gain(times, baseline) * total_s / (total_s + uncounted_fill_s(times))
    low = max(low * elsewhere, min(low, 1.0))
    rests_on_others = low < counted_low
    work = concentrated_work(raw)
    if rests_on_others or work.on_low < 1.0:
        labels = (*labels, LabelName.WORK_OF_OTHER_CALLS)
    estimate = interval.estimate * work.on_estimate
    low, high = min(low * work.on_low, estimate), max(high, estimate)
    interval = intervals.Interval(estimate, low, high)
    if any_host:
        interval = widened(interval, *host_half_widths(times))
    theirs, ours = (
        bootstrap.median(charged_times(times, name)) * 1e6 for name in (baseline, "candidate")
    )
    shown = paired(theirs, ours, interval.estimate)
    own = times.gpu.self_reported_s
    reported = _paired(own.get(baseline, []), own.get("candidate", []))
    return Comparison(
        **_measured(times, baseline, raw, shown, official=False),
        speedup=interval.estimate,
        speedup_low=interval.low,
        speedup_high=interval.high,
        conclusion=intervals.decide(interval),
        labels=labels,
        blocks_per_process=tuple(len(group) for group in _by_replicate(times, rows)),
        self_reported_us=_rounded(reported),
    )


def _measured(
    times: CaseTimes, baseline: str, raw: list[Row], shown: PairedTimes, *, official: bool
) -> Fields:
    """Return the fields of a comparison besides its speed-up."""
    return {
        "case": times.case,
        "baseline": baseline,
        "candidate": _timing(times, "candidate", official=official),
        "baseline_timing": _timing(times, baseline, official=official),
        "baseline_us": shown.baseline_us,
        "candidate_us": shown.candidate_us,
        "blocks": len(raw),
        "moved_bytes": times.moved_bytes,
        "input_shapes": times.size.input_shapes,
        "raw_us": _rounded(raw),
    }


def estimated_interval(
    times: CaseTimes, baseline: str, sigma: float, rows: list[Row] | None = None
) -> intervals.Interval:
    """Return the speed-up over one baseline with its 95 % interval, over all replicates.

    One process of a baseline may serve several replicates. The half of the variance that comes
    from the baseline then shrinks only with the number of the baseline's processes.
    """
    blocks = _rows(times, baseline) if rows is None else rows
    ratios = [intervals.paired_log_ratios(group) for group in _by_replicate(times, blocks)]
    theirs = len(times.processes.get(baseline, ())) or len(ratios)
    independent = 2 / (1 / len(ratios) + 1 / min(theirs, len(ratios)))
    return replicates_interval(ratios, sigma, independent)


def _rows(times: CaseTimes, baseline: str) -> list[Row]:
    """Return one row for each block, in microseconds."""
    return _paired(charged_times(times, baseline), charged_times(times, "candidate"))


def _paired(theirs: list[float], ours: list[float]) -> list[Row]:
    return [
        (theirs[i] * 1e6, ours[i] * 1e6, ours[i + 1] * 1e6, theirs[i + 1] * 1e6)
        for i in range(0, len(ours) - 1, 2)
    ]


def _by_replicate(times: CaseTimes, rows: list[Row]) -> list[list[Row]]:
    """Return the blocks of each process replicate."""
    edges = [*(times.replicate_starts or [0]), len(rows)]
    return [rows[start:stop] for start, stop in pairwise(edges) if stop > start]


def _rounded(rows: list[Row]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(round(value, 3) for value in row) for row in rows)


def _timing(times: CaseTimes, name: str, *, official: bool) -> Timing:
    values = [value * 1e6 for value in charged_times(times, name)]
    low, high = bootstrap.bootstrap_median_interval(values)
    waited, batched = times.gpu.call_latency_s.get(name), times.gpu.back_to_back_s.get(name)
    on_device = "cuda_events_candidate" if official else "cuda_events_trusted"
    return Timing(
        median_us=bootstrap.median(values),
        low_us=low,
        high_us=high,
        samples=len(values),
        method=on_device if times.on_device else "host_clock",
        call_latency_us=bootstrap.median(waited) * 1e6 if waited else None,
        back_to_back_us=None if batched is None else batched * 1e6,
        peak_bytes=times.gpu.peak_bytes.get(name),
    )
