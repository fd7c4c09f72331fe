"""What timing a case showed, and what follows from it: net times, pairs, intervals. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.records import Comparison, Timing
from tilewright.scoring import statistics

__all__ = ["CaseTimes", "compare", "hideable_s", "is_short", "net"]

HIDDEN_FLOOR_S, HIDDEN_SHARE = 1e-5, 0.05
"""Work beside a call that is not charged: this, and this share of what the harness does there."""
SHORT_SHARE = 0.05
"""A call is `short` when more than this share of it could be hidden."""
SHORT_DEVICE_S = 2e-5
"""A device call below this is `short`: launches and clocks matter in it."""


@dataclass
class CaseTimes:
    """Everything that timing one case showed. Times in seconds, per side in order of calls."""

    case: str
    totals: dict[str, list[float]] = field(default_factory=dict)
    outside: dict[str, list[float]] = field(default_factory=dict)
    disturbed: list[float] = field(default_factory=list)
    """CPU seconds that the candidate used while a baseline was being timed, over that call."""
    wrong: list[str] = field(default_factory=list)
    mutated: list[str] = field(default_factory=list)
    launches: list[int] = field(default_factory=list)
    checked: int = 0
    blocks: int = 0
    moved_bytes: int = 0
    """Bytes of the inputs and outputs of one call."""
    on_device: bool = False
    """Whether the times are device times by the judge's clock, not a caller's."""
    said: list[float] = field(default_factory=list)
    """The candidate's calls on a device by its own events, in seconds: testimony."""
    early: int = 0
    """Calls of the candidate that could not be queued whole: it waits for the device itself."""


def hideable_s(times: CaseTimes) -> float:
    """Return the seconds of work beside a call that cannot be told from the harness's own."""
    if times.on_device:
        return 0.0
    return HIDDEN_FLOOR_S + HIDDEN_SHARE * _usual_outside(times)


def _usual_outside(times: CaseTimes) -> float:
    # By name, not by place: under the published rules the candidate is timed first.
    baselines = [calls for name, calls in times.outside.items() if name != "candidate"]
    return max(min(statistics.median(calls) for calls in baselines), 0.0)


def net(times: CaseTimes, name: str) -> list[float]:
    """Return a side's call times in seconds, work that it did beside its calls included.

    Whatever a side does between two calls beyond what a baseline does there counts as if it were
    done in the call, for all sides alike.
    """
    limit = _usual_outside(times) + hideable_s(times)
    return [
        total + max(outside - limit, 0.0)
        for total, outside in zip(times.totals[name], times.outside[name], strict=True)
    ]


def is_short(times: CaseTimes, baseline: str) -> bool:
    """Tell whether a call is so short that what a side may hide beside it, or a launch, matters."""
    if times.on_device:
        return statistics.median(times.totals[baseline]) < SHORT_DEVICE_S
    return hideable_s(times) > SHORT_SHARE * statistics.median(net(times, baseline))


def _rows(times: CaseTimes, baseline: str) -> list[tuple[float, float, float, float]]:
    """Return one row a block: baseline, candidate, candidate, baseline, in microseconds."""
    ours, theirs = net(times, "candidate"), net(times, baseline)
    return [
        (theirs[i] * 1e6, ours[i] * 1e6, ours[i + 1] * 1e6, theirs[i + 1] * 1e6)
        for i in range(0, len(ours) - 1, 2)
    ]


def shortest(times: CaseTimes) -> float:
    """Return the shortest call of a baseline, in seconds."""
    return min(min(net(times, name)) for name in list(times.totals)[:-1])


def half_width(times: CaseTimes, baseline: str) -> float:
    ratios = statistics.paired_log_ratios(_rows(times, baseline))
    low, high = statistics.bootstrap_median_interval(ratios)
    return (high - low) / 2


def compare(
    times: CaseTimes, baseline: str, sigma: float, labels: tuple[str, ...], *, official: bool
) -> Comparison:
    """Return the comparison of the candidate with one baseline on a timed case.

    For short calls the lower end allows for what the candidate may have hidden.

    Args:
        times: at least one block.
        baseline: a name among `times.totals`.
        sigma: standard deviation of the log ratio between processes, of the calibration.
        labels: facts about the measurement.
        official: use the published rule (ratio of means, no interval) instead.
    """
    rows = _rows(times, baseline)
    ours, theirs = _timing(times, "candidate"), _timing(times, baseline)
    raw = tuple(tuple(round(value, 3) for value in row) for row in rows)
    if official:
        means = [sum(times.totals[n]) / len(times.totals[n]) for n in (baseline, "candidate")]
        return Comparison(
            case=times.case,
            baseline=baseline,
            candidate=ours,
            reference=theirs,
            speedup=means[0] / means[1],
            speedup_low=None,
            speedup_high=None,
            blocks=len(rows),
            moved_bytes=times.moved_bytes,
            decision="no interval",
            labels=labels,
            raw_us=raw,
        )
    interval = statistics.speedup_interval(statistics.paired_log_ratios(rows), sigma)
    if is_short(times, baseline):
        allowed = ours.median_us / (ours.median_us + hideable_s(times) * 1e6)
        interval = statistics.Interval(interval.estimate, interval.low * allowed, interval.high)
    return Comparison(
        case=times.case,
        baseline=baseline,
        candidate=ours,
        reference=theirs,
        speedup=interval.estimate,
        speedup_low=interval.low,
        speedup_high=interval.high,
        blocks=len(rows),
        moved_bytes=times.moved_bytes,
        decision=statistics.decide(interval),
        labels=labels,
        raw_us=raw,
    )


def _timing(times: CaseTimes, name: str) -> Timing:
    values = [value * 1e6 for value in net(times, name)]
    low, high = statistics.bootstrap_median_interval(values)
    return Timing(
        median_us=statistics.median(values),
        low_us=low,
        high_us=high,
        samples=len(values),
        method="judge_events" if times.on_device else "supervisor_clock",
    )
