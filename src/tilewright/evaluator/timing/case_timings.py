"""What timing a case showed, and what follows from it: net times, pairs, intervals. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from tilewright.evaluator.timing.calibration import GPU_SHORT_US, Calibration
from tilewright.records import Comparison, Timing
from tilewright.scoring import bootstrap, intervals
from tilewright.scoring.process_replicates import MAX_REPLICATES, pairs_interval

__all__ = [
    "RELEASE_SLACK_S",
    "CaseTimes",
    "between_process_sigma",
    "charged_times",
    "compare",
    "cpu_before_release_s",
    "is_short",
    "may_be_noise",
    "needs_replicate",
    "undetectable_work_s",
    "untimed_cpu_excess_s",
]

HIDDEN_FLOOR_S, HIDDEN_SHARE = 1e-5, 0.05
"""Work beside a call that is not charged: this, and this share of what the harness does there."""
RELEASE_SLACK_S = 3e-4
"""How long a side that goes on may take until it is seen to wait for its release. What it takes
beyond that is in its time: others of its threads may be at work."""
INFORMATIVE_SHARE = 0.25
"""How many of a side's calls must tell what it did beside them, for a finding to rest on it."""
SHORT_SHARE = 0.05
"""A call is `short` when more than this share of it could be hidden."""
SELF_REPORT_BAND_S, SELF_REPORT_SLACK_S = 12e-6, 4e-6
"""How much less than the judge a side's own events may say, and how much more a candidate's than a
baseline's: measured on an H200, 0.2 to 8.5 us by the kernel, the same for both sides of an A/A
within 1.2 us (docs/lab)."""
Row = tuple[float, float, float, float]
"""A block: baseline, candidate, candidate, baseline, in microseconds."""
NOISE_CEILING_LOG = math.log(1.2)
"""A smaller |log ratio| may be noise; divided by sqrt(n) for n replicates (docs/lab)."""
NOISE_CEILING_SIGMAS = 4.0
"""The same in standard deviations between processes; the larger of the two limits holds."""
NEGLIGIBLE_SIGMAS = 0.75
"""A difference below this many standard deviations needs no further replicate."""
NEGLIGIBLE_MIN = 0.0075
"""A |log ratio| below this never needs a further replicate, however small sigma is."""
NEGLIGIBLE_MAX = 0.03
"""A |log ratio| above this always needs one, however large sigma is."""
EXTRA_REPLICATES_FACTOR = 2
"""A claimed speed-up or slow-down may take this many times the extra replicates (ADR 42)."""
SHORT_DEVICE_S = GPU_SHORT_US * 1e-6
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
    alias: bool = False
    """Whether an output of a timed call lay among its inputs."""
    launches: list[int] = field(default_factory=list)
    checked: int = 0
    blocks: int = 0
    replicate_starts: list[int] = field(default_factory=list)
    """The first block of each pair of processes; none: one pair made them all."""
    processes: dict[str, set[int]] = field(default_factory=dict)
    """The processes of each side that took part."""
    moved_bytes: int = 0
    """Bytes of the inputs and outputs of one call."""
    on_device: bool = False
    """Whether the times are device times by the judge's clock, not a caller's."""
    said: dict[str, list[float]] = field(default_factory=dict)
    """Calls on a device by the sides' own events, in seconds: testimony."""
    waited: dict[str, list[float]] = field(default_factory=dict)
    """Calls on a device as a Python caller waits for them, in seconds."""
    batched: dict[str, float] = field(default_factory=dict)
    """Seconds of one call of many behind one gate, with warm caches."""
    peaks: dict[str, int] = field(default_factory=dict)
    """Bytes that a call allocates at its peak, by the sides' own word."""
    early: int = 0
    """Calls of the candidate that could not be queued whole: it waits for the device itself."""
    launching: bool | None = None
    """Whether launches are in the times on a device, since the baseline's take too long to be
    queued ahead; `None` until it was looked at."""

    def record_answer(self, answer: dict[str, Any], *, own: bool, compared: bool) -> None:
        """Note what the judge saw after a call, the candidate's `own` or another's."""
        if own:
            self.mutated += [item for item in answer["mutated"] if item not in self.mutated]
            self.alias |= answer["alias"]
        if compared:
            self.checked += 1
            if answer["wrong"]:
                self.wrong.append(answer["message"])


def cpu_before_release_s(used_s: float, lasted_s: float, awake_s: float, threads: int) -> float:
    """Return the CPU seconds that a side of several threads used between its thaw and its release.

    The clock tells what it used from standing to standing alone (`used_s`). A call of `lasted_s`
    uses no more than its threads can; in the `awake_s` before it one thread waits and spins.
    """
    return max(used_s - threads * lasted_s - awake_s, 0.0)


def undetectable_work_s(times: CaseTimes) -> float:
    """Return the seconds of work beside a call that cannot be told from the harness's own."""
    if times.on_device:
        return 0.0
    return HIDDEN_FLOOR_S + HIDDEN_SHARE * _usual_outside(times)


def _usual_outside(times: CaseTimes) -> float:
    medians = [bootstrap.median(calls) for calls in informative_calls(times) if calls]
    return min(medians, default=0.0)


def untimed_cpu_excess_s(times: CaseTimes) -> float:
    """Return a candidate's CPU seconds beside a call beyond the baselines', 0 where none can tell.

    The lower quartile, since on a busy machine a side spins longer until it is released, never
    shorter. What it does in fewer calls than that is charged to them.
    """
    ours = times.outside.get("candidate", [])
    least = INFORMATIVE_SHARE * len(ours)
    usual = [
        bootstrap.median(calls) for calls in informative_calls(times) if len(calls) >= max(least, 1)
    ]
    return max(bootstrap.quantile(ours, 0.25) - max(usual), 0.0) if ours and usual else 0.0


def informative_calls(times: CaseTimes) -> list[list[float]]:
    """Return what each baseline did beside those of its calls that tell it, in seconds.

    In a call in which it waited for a busy core it used less than the call was long, which comes
    out as less than nothing beside it. A candidate that made it wait would have disturbed it.
    """
    # By name, not by place: under the published rules the candidate is timed first.
    baselines = [calls for name, calls in times.outside.items() if name != "candidate"]
    return [[value for value in calls if value >= 0] for calls in baselines]


def corrected_times(times: CaseTimes, name: str) -> list[float]:
    """Return a side's device times in seconds, by its own events where these can be believed.

    The judge's interval has up to some ten microseconds in it that are the device's change from
    one process to another, by what the call leaves behind; they are not in the side's own events.
    These count as long as they are within `SELF_REPORT_BAND_S` of the judge's figure, a candidate's
    only as far as a baseline's are, and no lower end of an interval rests on them.
    """
    totals, said = times.totals[name], times.said.get(name, [])
    if len(said) != len(totals) or not all(value > 0 for value in said):
        return totals
    limit = SELF_REPORT_BAND_S
    if name == "candidate":
        others = [clock_offset_s(times, other) for other in times.totals if other != "candidate"]
        limit = min(limit, max(max(others), 0.0) + SELF_REPORT_SLACK_S)
    return said if -SELF_REPORT_SLACK_S <= clock_offset_s(times, name) <= limit else totals


def clock_offset_s(times: CaseTimes, name: str) -> float:
    """Return the seconds that the judge's figure has beyond a side's own."""
    pairs = zip(times.totals[name], times.said.get(name, []), strict=False)
    return bootstrap.median([total - said for total, said in pairs] or [0.0])


def charged_times(times: CaseTimes, name: str) -> list[float]:
    """Return a side's call times in seconds, work that it did beside its calls included.

    Whatever a side does between two calls beyond what a baseline does there counts as if it were
    done in the call, for all sides alike.
    """
    if times.on_device:
        return corrected_times(times, name)
    limit = _usual_outside(times) + undetectable_work_s(times)
    return [
        total + max(outside - limit, 0.0)
        for total, outside in zip(times.totals[name], times.outside[name], strict=True)
    ]


def is_short(times: CaseTimes, baseline: str) -> bool:
    """Tell whether a call is so short that what a side may hide beside it, or a launch, matters."""
    if times.on_device:
        return bootstrap.median(times.totals[baseline]) < SHORT_DEVICE_S
    return undetectable_work_s(times) > SHORT_SHARE * bootstrap.median(
        charged_times(times, baseline)
    )


def _rows(times: CaseTimes, baseline: str) -> list[Row]:
    """Return one row a block: baseline, candidate, candidate, baseline, in microseconds."""
    return _paired(charged_times(times, baseline), charged_times(times, "candidate"))


def _paired(theirs: list[float], ours: list[float]) -> list[Row]:
    return [
        (theirs[i] * 1e6, ours[i] * 1e6, ours[i + 1] * 1e6, theirs[i + 1] * 1e6)
        for i in range(0, len(ours) - 1, 2)
    ]


def shortest(times: CaseTimes) -> float:
    """Return the shortest call of a baseline, in seconds."""
    return min(min(charged_times(times, name)) for name in list(times.totals)[:-1])


def by_replicate(times: CaseTimes, rows: list[Row]) -> list[list[Row]]:
    """Return the blocks of each pair of processes."""
    edges = [*(times.replicate_starts or [0]), len(rows)]
    return [rows[start:stop] for start, stop in pairwise(edges) if stop > start]


def half_width(times: CaseTimes, baseline: str) -> float:
    """Return half the width of the 95 % interval of the log ratio in the newest pair."""
    ratios = intervals.paired_log_ratios(by_replicate(times, _rows(times, baseline))[-1])
    low, high = bootstrap.bootstrap_median_interval(ratios)
    return (high - low) / 2


def replicates_half_width(times: CaseTimes, baseline: str, sigma: float) -> float:
    """Return half the width of the 95 % interval of the log ratio over all pairs of processes."""
    found = _interval(times, baseline, _rows(times, baseline), sigma)
    return math.log(found.high / found.low) / 2


def may_be_noise(times: CaseTimes, baseline: str, sigma: float) -> bool:
    """Tell whether the pairs so far show a difference that may be one of two processes alone.

    Also one that is within its interval, unless it is little: the estimate is reported too.
    """
    seen, claimed = _seen(times, baseline, sigma)
    little = not claimed and seen <= min(
        max(NEGLIGIBLE_SIGMAS * sigma, NEGLIGIBLE_MIN), NEGLIGIBLE_MAX
    )
    noise = max(NOISE_CEILING_LOG, NOISE_CEILING_SIGMAS * sigma) / math.sqrt(
        len(times.replicate_starts) or 1
    )
    return not little and seen < noise


def needs_replicate(times: CaseTimes, baseline: str, sigma: float, planned: int, more: int) -> bool:
    """Tell whether a pair of processes beyond those planned on a device is to be made.

    In doubt up to `more` are, and twice as many where the pairs say that the sides differ: an
    interval of 95 % says so of one in forty short calls that do not, by several percent.
    """
    _, claimed = _seen(times, baseline, sigma)
    most = planned + (EXTRA_REPLICATES_FACTOR if claimed else 1) * more
    made = len(times.replicate_starts)
    return made < min(most, MAX_REPLICATES) and may_be_noise(times, baseline, sigma)


def _seen(times: CaseTimes, baseline: str, sigma: float) -> tuple[float, bool]:
    """Return how far the estimate is off 1, a logarithm, and whether its interval excludes 1."""
    found = _interval(times, baseline, _rows(times, baseline), sigma)
    claimed = intervals.decide(found) != "no measurable difference"
    return abs(math.log(found.estimate)), claimed


def between_process_sigma(times: CaseTimes, baseline: str, calibration: Calibration) -> float:
    """Return by how much a process of the candidate and one of a baseline differ by luck alone."""
    if not times.on_device:
        return calibration.sigma(bootstrap.median(times.totals[baseline]) * 1e6, times.moved_bytes)
    theirs, ours = (
        bootstrap.median(charged_times(times, name)) * 1e6 for name in (baseline, "candidate")
    )
    return calibration.sigma(theirs, times.moved_bytes, ours)


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
    ours, theirs = (_timing(times, name, official=official) for name in ("candidate", baseline))
    raw = tuple(tuple(round(value, 3) for value in row) for row in rows)
    if official:
        means = [sum(times.totals[n]) / len(times.totals[n]) for n in (baseline, "candidate")]
        return Comparison(
            case=times.case,
            baseline=baseline,
            candidate=ours,
            baseline_timing=theirs,
            speedup=means[0] / means[1],
            speedup_low=None,
            speedup_high=None,
            blocks=len(rows),
            moved_bytes=times.moved_bytes,
            conclusion="no interval",
            labels=labels,
            raw_us=raw,
        )
    interval = _interval(times, baseline, rows, sigma)
    if times.on_device:
        judged = _paired(times.totals[baseline], times.totals["candidate"])
        alone = _interval(times, baseline, judged, sigma)
        low, high = min(interval.low, alone.low), max(interval.high, alone.high)
        interval = intervals.Interval(interval.estimate, low, high)
        raw = tuple(tuple(round(value, 3) for value in row) for row in judged)
    elif is_short(times, baseline):
        allowed = ours.median_us / (ours.median_us + undetectable_work_s(times) * 1e6)
        interval = intervals.Interval(interval.estimate, interval.low * allowed, interval.high)
    return Comparison(
        case=times.case,
        baseline=baseline,
        candidate=ours,
        baseline_timing=theirs,
        speedup=interval.estimate,
        speedup_low=interval.low,
        speedup_high=interval.high,
        blocks=len(rows),
        moved_bytes=times.moved_bytes,
        conclusion=intervals.decide(interval),
        labels=labels,
        blocks_per_process=tuple(len(group) for group in by_replicate(times, rows)),
        raw_us=raw,
        self_reported_us=_self_reported_rows(times, baseline),
    )


def _interval(times: CaseTimes, baseline: str, rows: list[Row], sigma: float) -> intervals.Interval:
    """Return the geometric mean of what each pair of processes says, with its interval.

    A baseline that is compiled, or was kept, may be in several pairs: the half of the variance
    that is its own shrinks with the number of its processes only.
    """
    ratios = [intervals.paired_log_ratios(group) for group in by_replicate(times, rows)]
    theirs = len(times.processes.get(baseline, ())) or len(ratios)
    apart = 2 / (1 / len(ratios) + 1 / min(theirs, len(ratios)))
    return pairs_interval(ratios, sigma, apart)


def _self_reported_rows(times: CaseTimes, baseline: str) -> tuple[tuple[float, ...], ...]:
    rows = _paired(times.said.get(baseline, []), times.said.get("candidate", []))
    return tuple(tuple(round(value, 3) for value in row) for row in rows)


def _timing(times: CaseTimes, name: str, *, official: bool) -> Timing:
    values = [value * 1e6 for value in charged_times(times, name)]
    low, high = bootstrap.bootstrap_median_interval(values)
    return Timing(
        median_us=bootstrap.median(values),
        low_us=low,
        high_us=high,
        samples=len(values),
        method=_method(times, official=official),
        call_latency_us=bootstrap.median(times.waited[name]) * 1e6
        if times.waited.get(name)
        else None,
        back_to_back_us=times.batched[name] * 1e6 if name in times.batched else None,
        peak_bytes=times.peaks.get(name),
    )


def _method(
    times: CaseTimes, *, official: bool
) -> Literal["host_clock", "cuda_events_trusted", "cuda_events_candidate"]:
    if not times.on_device:
        return "host_clock"
    return "cuda_events_candidate" if official else "cuda_events_trusted"
