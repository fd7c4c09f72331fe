"""The timed calls of one case, and the time that counts for each. Pure functions of data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.evaluator.judge_client.client import InputSampleInfo
from tilewright.evaluator.judge_client.messages import (
    PublishSample,
    RenewSample,
    TimedAnswer,
)
from tilewright.evaluator.timing.calibration import GPU_SHORT_US
from tilewright.scoring import bootstrap
from tilewright.wire.names import OutputMemory

UNDETECTABLE_S = 5e-6
"""Seconds of work in a call that are never charged: the credit for what every call costs
(`MAX_EMPTY_CALL_S`)."""
UNTIMED_FLOOR_S = 1e-5
"""Seconds of CPU work before a call that are not charged: the resolution of the clocks."""
UNTIMED_SHARE = 0.05
"""Share of the harness's own CPU work before a call that is not charged either, because that work
varies from call to call. No input of the call can be read then."""
MIN_INFORMATIVE_SHARE = 0.25
"""Share of a baseline's calls that must show its work outside them, for a finding to rest on it."""
SHORT_SHARE = 0.05
"""A call is short if more than this share of it could be undetectable work."""
SELF_REPORT_BAND_S = 12e-6
"""Seconds by which an implementation's own events may show less than the judge's events. Measured
on an H200: 0.2 to 8.5 us, by kernel (docs/lab)."""
SELF_REPORT_SLACK_S = 4e-6
"""Seconds by which the candidate may exceed a baseline's difference of the two clocks. Measured in
A/A runs on an H200: 1.2 us (docs/lab)."""


@dataclass(frozen=True)
class LaunchGateMode:
    """How the launch gate is used on all implementations of a case; the first baseline decides."""

    queue_timeout_s: float
    """Seconds after which the gate opens although a call is not queued whole."""
    launching: bool = False
    """Whether the gate is open from the start, because the baseline's launches take too long to be
    queued ahead. The times then include launches."""
    waits: bool = False
    """Whether the baseline's calls wait for the device themselves. The times then include the
    work that the host does afterwards."""

    @property
    def includes_host(self) -> bool:
        """Return whether the times include work of the host."""
        return self.launching or self.waits


@dataclass
class GpuReadings:
    """Readings only of a device's clock. Times in seconds, by implementation in order of calls."""

    self_reported_s: dict[str, list[float]] = field(default_factory=dict)
    """Calls by the implementations' own events, which a candidate can forge."""
    call_latency_s: dict[str, list[float]] = field(default_factory=dict)
    """Calls as a Python caller waits for them."""
    queued_s: dict[str, list[float]] = field(default_factory=dict)
    """From the request of a call until it was queued, for calls that were queued whole."""
    back_to_back_s: dict[str, float] = field(default_factory=dict)
    """One of many calls that are queued together, with warm caches."""
    peak_bytes: dict[str, int] = field(default_factory=dict)
    """Memory that a call allocates at its peak, as the implementation reports it."""
    early: int = 0
    """Calls of the candidate that could not be queued whole."""
    baseline_cpu: list[float] = field(default_factory=list)
    """CPU seconds of the first baseline during a call of the candidate, over the seconds of the
    request. Empty if the times include no work of the host."""
    launch_gate: LaunchGateMode | None = None
    """How the launch gate is used; `None`: not known yet."""
    renews_early: bool = False
    """Whether new inputs are made before a call and not with it: other seeds may be needed."""

    @property
    def launching(self) -> bool:
        """Return whether the times include launches."""
        return self.launch_gate is not None and self.launch_gate.launching

    @property
    def includes_host(self) -> bool:
        """Return whether the times include work of the host."""
        return self.launch_gate is not None and self.launch_gate.includes_host


@dataclass
class CandidateMemory:
    """How the candidate used memory in timed calls, and which it had before them."""

    mutated: list[str] = field(default_factory=list)
    """Inputs that it overwrote."""
    misplaced: list[OutputMemory] = field(default_factory=list)
    """Memory in which its outputs lay and may not lie."""
    ready_bytes: list[int] = field(default_factory=list)
    """On a CPU: bytes of outputs that it may have kept ready before each process replicate."""
    found_ready: list[int] = field(default_factory=list)
    """Bytes of the outputs of each compared call on nominal inputs that had their values before the
    call. On a CPU: that nobody had written."""
    unchanged: list[int] = field(default_factory=list)
    """On a CPU: bytes of the expected outputs of compared calls that were as in the call before."""

    def record(self, answer: TimedAnswer, *, nominal: bool) -> None:
        """Add what the judge saw after a call."""
        self.mutated += [item for item in answer.mutated if item not in self.mutated]
        self.misplaced += [item for item in answer.misplaced if item not in self.misplaced]
        if nominal and answer.ready_bytes is not None:
            self.found_ready.append(answer.ready_bytes)


@dataclass(frozen=True)
class CallSize:
    """The size and the kind of a call's arguments and results."""

    moved_bytes: int = 0
    """Bytes of the inputs and outputs."""
    input_shapes: tuple[tuple[int, ...], ...] = ()
    """Shapes of the tensors among the arguments, in order."""
    output_bytes: int = 0
    """Bytes of the outputs alone."""
    is_random: bool = False
    """Whether outputs depend on the forward seed, which a runner knows before its call."""


@dataclass
class HarnessTimes:
    """Seconds of tilewright's own work."""

    empty_call_s: float = 0.0
    """A call of the candidate's runner that does nothing, on a CPU."""
    as_checked_s: float = 0.0
    """All comparisons by the rules of checked calls, which no limit of timing contains."""


@dataclass
class CaseTimes:
    """Everything that timing one case showed. Times in seconds, by implementation."""

    case: str
    total_s: dict[str, list[float]] = field(default_factory=dict)
    """Calls in order; baselines first, the candidate last."""
    untimed_cpu_s: dict[str, list[float]] = field(default_factory=dict)
    """CPU seconds that an implementation used outside each call since its previous one."""
    disturbed: list[float] = field(default_factory=list)
    """The candidate's CPU time during each call of the first baseline, as a share of that call.
    On a GPU it is a share of the request. The check of interference replaces it by the share
    by which the candidate slowed the first baseline."""
    wrong: list[str] = field(default_factory=list)
    memory: CandidateMemory = field(default_factory=CandidateMemory)
    varied: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    """Calls on input variations, which no ratio contains: variation and seconds."""
    launches: list[int] = field(default_factory=list)
    blocks: int = 0
    replicate_starts: list[int] = field(default_factory=list)
    """The first block of each process replicate; empty: one replicate made them all."""
    processes: dict[str, set[int]] = field(default_factory=dict)
    """The processes of each implementation that took part."""
    size: CallSize = CallSize()
    on_device: bool = False
    """Whether the times are device times by the judge's clock, not a caller's."""
    harness: HarnessTimes = field(default_factory=HarnessTimes)
    gpu: GpuReadings = field(default_factory=GpuReadings)

    @classmethod
    def of(cls, case: str, names: Sequence[str], *, on_device: bool) -> CaseTimes:
        """Return a case of which nothing was timed yet."""
        times = cls(case, on_device=on_device)
        for name in names:
            times.total_s[name], times.untimed_cpu_s[name], times.varied[name] = [], [], []
        return times

    @property
    def moved_bytes(self) -> int:
        """Return the bytes of the inputs and outputs of one call."""
        return self.size.moved_bytes

    @property
    def candidate_waits(self) -> bool:
        """Return whether most calls of the candidate waited for the device themselves.

        A runner that reports late that its call is queued seems to wait.
        """
        return self.gpu.early * 2 > len(self.total_s["candidate"])

    def record_answer(
        self, answer: TimedAnswer, *, own: bool, compared: bool, nominal: bool
    ) -> None:
        """Record what the judge saw after a call, `own`: of the candidate."""
        if own:
            self.memory.record(answer, nominal=nominal)
        if compared:
            self.harness.as_checked_s += answer.as_checked_s
            if nominal and answer.unchanged_bytes is not None:
                self.memory.unchanged.append(answer.unchanged_bytes)
            if answer.wrong:
                self.wrong.append(answer.message)


@dataclass(frozen=True)
class TimedCall:
    """One planned call of a block: of the runner `name`, on an input sample in a slot."""

    name: str
    sample: InputSampleInfo
    slot: int
    variation: str
    """The input variation; only calls on nominal inputs enter a ratio."""
    checked: bool
    """Whether outputs are compared."""
    last: bool
    """Whether it is the last call on these values, after which outputs can be compared."""
    renewal: RenewSample | None = None
    """The request for new inputs, if it is sent with the call; `None`: they are made already."""
    as_checked: bool = False
    """Whether outputs are compared by the rules of checked calls too."""

    @property
    def varied(self) -> bool:
        """Whether the call enters no ratio."""
        return self.variation != "nominal"

    @property
    def base(self) -> int:
        """Return where the inputs begin in the input memory, in bytes."""
        return self.slot * self.sample.slot_bytes

    def published(self) -> PublishSample:
        """Return what the judge needs to write the inputs of this call."""
        return PublishSample(self.sample.name, self.name, self.base)


def undetectable_work_s(times: CaseTimes, baseline: str) -> float:
    """Return the seconds of a candidate's work for a call that may not be in its time.

    That is work before its calls which `charged_times` forgives, because the harness's own work
    varies as much. It is also all that tilewright's own code does in a call, because a candidate
    can replace that code by a shorter one.
    """
    if times.on_device:
        return 0.0
    ours, theirs = times.untimed_cpu_s.get("candidate", []), _informative_calls(times)
    excess = 0.0
    if ours and any(theirs):
        usual = max(bootstrap.quantile(calls, 0.25) for calls in theirs if calls)
        excess = max(bootstrap.quantile(ours, 0.25) - usual, 0.0)
    forgiven = UNTIMED_FLOOR_S + UNTIMED_SHARE * _usual_untimed_cpu(times)
    credit = UNDETECTABLE_S if is_short(times, baseline) else 0.0
    return min(excess, forgiven) + max(credit, times.harness.empty_call_s)


def _usual_untimed_cpu(times: CaseTimes) -> float:
    medians = [bootstrap.median(calls) for calls in _informative_calls(times) if calls]
    return min(medians, default=0.0)


def untimed_cpu_excess_s(times: CaseTimes) -> float:
    """Return a candidate's CPU seconds outside a call beyond the baselines'; 0: not known.

    It is the lower quartile: on a busy machine a runner waits longer for its release, never
    shorter. Work outside fewer calls than a quarter is charged to those calls instead.
    """
    ours = times.untimed_cpu_s.get("candidate", [])
    least = MIN_INFORMATIVE_SHARE * len(ours)
    usual = [
        bootstrap.median(calls)
        for calls in _informative_calls(times)
        if len(calls) >= max(least, 1)
    ]
    return max(bootstrap.quantile(ours, 0.25) - max(usual), 0.0) if ours and usual else 0.0


def _informative_calls(times: CaseTimes) -> list[list[float]]:
    """Return each baseline's CPU seconds outside those of its calls that show it.

    A baseline that waited for a busy core used less CPU time than its call lasted. The value of
    such a call is negative. A candidate that made it wait would have disturbed it.
    """
    # By name, not by order: under the published rules the candidate is timed first.
    baselines = [calls for name, calls in times.untimed_cpu_s.items() if name != "candidate"]
    return [[value for value in calls if value >= 0] for calls in baselines]


def corrected_times(times: CaseTimes, name: str) -> list[float]:
    """Return an implementation's device times in seconds, by its own events if they are credible.

    The judge's interval contains up to some ten microseconds in which the device changes from one
    process to another. The implementation's own events do not contain them. They count while they
    lie within `SELF_REPORT_BAND_S` of the judge's times. For a candidate the band is only as wide
    as a baseline's difference. No lower end of an interval rests on them.
    """
    totals, reported = times.total_s[name], times.gpu.self_reported_s.get(name, [])
    if len(reported) != len(totals) or not all(value > 0 for value in reported):
        return totals
    limit = SELF_REPORT_BAND_S
    if name == "candidate":
        others = [clock_offset_s(times, other) for other in times.total_s if other != "candidate"]
        limit = min(limit, max(max(others), 0.0) + SELF_REPORT_SLACK_S)
    return reported if -SELF_REPORT_SLACK_S <= clock_offset_s(times, name) <= limit else totals


def clock_offset_s(times: CaseTimes, name: str) -> float:
    """Return the seconds by which the judge's times exceed an implementation's own events."""
    calls = zip(times.total_s[name], times.gpu.self_reported_s.get(name, []), strict=False)
    return bootstrap.median([total - own for total, own in calls] or [0.0])


def charged_times(times: CaseTimes, name: str) -> list[float]:
    """Return an implementation's call times in seconds, with its work outside the calls.

    CPU work before a call that exceeds a baseline's usual work there counts as if it were
    done in the call, for all implementations alike.
    """
    if times.on_device:
        return corrected_times(times, name)
    usual = _usual_untimed_cpu(times)
    limit = usual + UNTIMED_FLOOR_S + UNTIMED_SHARE * usual
    return [
        total + max(outside - limit, 0.0)
        for total, outside in zip(times.total_s[name], times.untimed_cpu_s[name], strict=True)
    ]


def is_short(times: CaseTimes, baseline: str) -> bool:
    """Tell whether a call is so short that undetectable work, or a launch, matters in it."""
    if times.on_device:
        return bootstrap.median(times.total_s[baseline]) < GPU_SHORT_US * 1e-6
    return SHORT_SHARE * bootstrap.median(charged_times(times, baseline)) < UNDETECTABLE_S
