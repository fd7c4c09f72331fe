"""How one call is timed on a GPU: by the judge's events around a call that was queued before.

The judge closes its gate, the contestant queues its call behind it and says so, the judge queues
the copies of the outputs, wherever they lie, and opens the gate. What cannot be queued within
`QUEUE_S` waits for the device itself, or is of thousands of launches: then the gate is opened
first, and the whole side stands still while the copies are queued. Where a baseline's launches take
longer than that, they are in the times of all sides (ADR 40): ten milliseconds of launches ahead
would be a share of a call that differs from one to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.evaluator.runners.cpu_runner import CallTiming, Runner
from tilewright.evaluator.runners.ended import EvaluationEnded
from tilewright.evaluator.runners.gpu_runner import QUEUE_S, GpuRunner
from tilewright.evaluator.runners.messages import Result
from tilewright.scoring import bootstrap

if TYPE_CHECKING:
    from tilewright.evaluator.judge_client.input_sample import InputSampleInfo
    from tilewright.evaluator.pipeline.session import EvaluationSession
    from tilewright.evaluator.timing.case_timings import CaseTimes
    from tilewright.evaluator.timing.cpu_clock import TimedCall

__all__ = [
    "CudaEventClock",
    "OwnKernelTime",
    "calibrate",
    "launches_are_long",
    "measure_call_latency",
    "measure_own_kernel_time",
]

CALIBRATION_CALLS = 15
SETTLING_CALLS = 3
WAITED_CALLS = 10
"""Calls by which is said what a Python caller waits."""
BATCH, BATCHED_S = 16, 1e-4
"""How many calls stand behind one gate for a batch, and how long one may take for that."""
KEPT = {"keep": False, "addresses": [], "look": [], "next": None}
"""What is not asked for after a call: outputs were copied when it was collected."""
SHORTEST_S = 1e-7
"""The clock's own scatter: nothing is said to take less."""
EMPTY: dict[str, Any] = {"t": "list", "v": []}
KNOWN_KERNEL = {
    "base": 0,
    "size": 0,
    "args": EMPTY,
    "grads": [],
    "grad_outputs": EMPTY,
    "forward_seed": 0,
    "expected": [],
}


@dataclass(frozen=True)
class GatedCall:
    """One gated call: seconds by the judge's events, and what was said and seen."""

    seconds: float
    result: Result
    early: bool
    answer: dict[str, Any]


def gated_call(
    session: EvaluationSession,
    runner: GpuRunner,
    fields: dict[str, Any],
    publish: dict[str, Any] | None = None,
    asked: dict[str, Any] | None = None,
    *,
    keep: bool = False,
    ahead: bool = True,
) -> GatedCall:
    """Make one call behind the gate; `asked` is what the judge does once it has ended.

    With `ahead` false the gate is open from the start, and launches are in the interval.

    Raises:
        Ended: the side failed, or its call does not end.
    """
    name, limit = runner.name, runner.limits.call_timeout_s
    sequence = next(session.host.sequences)
    sample = asked["sample"] if asked else None
    kept = sample if keep else None
    gate = {"runner": name, "publish": publish, "sequence": sequence, "keep": kept}
    session.tell("gate", gate)
    try:
        if not ahead:
            session.answered()
            session.ask("open", {})
        # While the judge queues what comes before the call, the side queues the call.
        runner.arm(fields, sequence)
        early = not runner.is_queued(runner.queue_s if ahead else limit)
        if ahead:
            session.answered()
        if early:
            session.ask("open", {})
            if not runner.is_queued(limit) or not runner.child.tree.freeze():
                raise runner.late()
        places = runner.output_addresses(len(fields["expected"]))
        observations = {"runner": name, "sample": kept, "addresses": places}
        session.tell("collect", observations)
        if early:
            session.answered()
            runner.child.tree.resume()
        result = runner.result()
        if not early:
            session.answered()
        answer = session.ask(
            "timed",
            {**(asked or {"sample": None}), **KEPT, "wait_s": limit},
        )
        if answer["seconds"] is None:
            raise runner.late()
    except EvaluationEnded:
        runner.child.kill()
        while session.unanswered:
            session.answered()
        session.ask("abandon", {"runner": name})
        raise
    return GatedCall(answer["seconds"], result, early, answer)


def calibrate(session: EvaluationSession, runner: GpuRunner) -> float:
    """Return the seconds by which the judge's interval exceeds a kernel's own time.

    Before a candidate is loaded, so that the contestant's own events can be believed.
    """
    excess = []
    for _ in range(SETTLING_CALLS + CALIBRATION_CALLS):
        call = gated_call(session, runner, KNOWN_KERNEL)
        excess.append(call.seconds - (call.result.self_reported_us or 0.0) / 1e6)
    return bootstrap.median(excess[SETTLING_CALLS:])


@dataclass(frozen=True)
class OwnKernelTime:
    """One call with events around its own launches."""

    seconds: float
    """What passed between them: its own word."""
    launches: int


def measure_own_kernel_time(
    session: EvaluationSession, runner: GpuRunner, sample: InputSampleInfo
) -> OwnKernelTime:
    """Make one call; return what of it passed in own kernels, by the side's own events."""
    publish = {"sample": sample.name, "runner": runner.name, "base": 0, "perturb": None}
    fields = {**session.fields_of(sample, 0), "profile": True}
    call = gated_call(session, runner, fields, publish)
    return OwnKernelTime((call.result.own_us or 0.0) / 1e6, call.result.launches)


def measure_call_latency(
    session: EvaluationSession, times: CaseTimes, names: list[str], sample: InputSampleInfo
) -> None:
    """Note of each side what stands beside its device time: what a caller waits, and a batch.

    Raises:
        Ended: a side failed.
    """
    for name in names:
        runner = _on_device(session.runners[name])
        fields = session.fields_of(sample, 0)
        session.publish(runner, sample, 0)
        calls = [
            runner.waited_call(fields, next(session.host.sequences)) for _ in range(WAITED_CALLS)
        ]
        times.waited[name] = [seconds for seconds, _ in calls]
        times.peaks[name] = max(result.peak_bytes or 0 for _, result in calls)
        session.call_s += sum(times.waited[name])
        if bootstrap.median(times.totals[name]) <= BATCHED_S:
            batch = gated_call(session, runner, {**fields, "times": BATCH})
            seconds = max(batch.seconds - runner.clock_excess_s, SHORTEST_S)
            times.batched[name] = seconds / BATCH
            session.call_s += seconds


class CudaEventClock:
    """The judge's events on the device, less what is between them without any work."""

    check_all_bytes = 64 << 20
    pairs = False
    # A kernel that a candidate left behind may see a baseline's inputs: they are never its own.

    def begin(self, session: EvaluationSession, turn: TimedCall) -> None:
        """Do nothing: inputs are written behind each call's own gate."""

    def unsettle(self, session: EvaluationSession, names: list[str]) -> None:
        """Have sides be called as they were when they were opened."""
        for name in names:
            runner = _on_device(session.runners[name])
            runner.queue_s = QUEUE_S
            runner.child.tree.keep_on(session.host.cores.runners)

    def settle(
        self,
        session: EvaluationSession,
        times: CaseTimes,
        names: list[str],
        sample: InputSampleInfo,
    ) -> None:
        """Have launches in the times, and every side on one core, where the baseline's are long.

        The first baseline alone says so: a candidate that was slow now and quick later would have
        launches counted that it does not make.
        """
        baseline = _on_device(session.runners[names[0]])
        if times.launching is None:
            times.launching = baseline.was_early and launches_are_long(session, baseline, sample)
        if times.launching:
            for name in names:
                runner = _on_device(session.runners[name])
                runner.queue_s = 0.0
                # Cores of one host differ by more than these calls do (docs/lab).
                runner.child.tree.keep_on(session.host.cores.runners[:1])

    def call(
        self,
        session: EvaluationSession,
        times: CaseTimes,
        turn: TimedCall,
        after: TimedCall | None,  # noqa: ARG002
    ) -> CallTiming:
        """Make one call on fresh inputs, and have its outputs compared."""
        runner = _on_device(session.runners[turn.name])
        fields = session.fields_of(turn.sample, turn.slot)
        own = turn.name == "candidate"
        checked = own and turn.checked
        asked = {"sample": turn.sample.name, "runner": turn.name, "base": turn.base}
        asked |= {"expect": checked, "compare": checked}
        other, used = session.runners["candidate"].child.tree, 0.0
        watched = bool(times.launching) and not own
        if watched:
            other.look()
            used = other.cpu_s()
        call = gated_call(session, runner, fields, turn.published(), asked, keep=checked)
        if watched:
            # What it started meanwhile counts too.
            other.look()
            times.disturbed.append((other.cpu_s() - used) / max(call.seconds, SHORTEST_S))
        times.said.setdefault(turn.name, []).append((call.result.self_reported_us or 0.0) / 1e6)
        if own:
            times.record_answer(call.answer, own=True, compared=checked)
            times.early += call.early
        return _timed(runner, call)

    def warm_up(
        self, session: EvaluationSession, runner: Runner, sample: InputSampleInfo, slot: int
    ) -> float:
        """Make one call that does not count."""
        own = _on_device(runner)
        base = slot * sample.slot_bytes
        publish = {"sample": sample.name, "runner": runner.name, "base": base, "perturb": None}
        call = gated_call(session, own, session.fields_of(sample, slot), publish)
        own.was_early = call.early
        return _timed(own, call).total_s

    def publicly(
        self, session: EvaluationSession, runner: Runner, sample: InputSampleInfo
    ) -> CallTiming:
        """Make one call between two events of the side's own, as the published rules do."""
        fields = session.fields_of(sample, 0)
        call = gated_call(session, _on_device(runner), fields, ahead=False)
        return CallTiming(
            max((call.result.self_reported_us or 0.0) / 1e6, SHORTEST_S), 0.0, call.result
        )


def launches_are_long(
    session: EvaluationSession, runner: GpuRunner, sample: InputSampleInfo
) -> bool:
    """Tell whether a call whose gate is open takes longer than one is waited for.

    What only waits for its device takes no longer than its kernels do.
    """
    session.publish(runner, sample, 0)
    runner.queue_s = 0.0
    call = gated_call(session, runner, session.fields_of(sample, 0))
    runner.queue_s = QUEUE_S
    session.call_s += call.seconds
    return call.seconds > QUEUE_S


def _timed(runner: GpuRunner, call: GatedCall) -> CallTiming:
    return CallTiming(max(call.seconds - runner.clock_excess_s, SHORTEST_S), 0.0, call.result)


def _on_device(runner: Runner) -> GpuRunner:
    if not isinstance(runner, GpuRunner):
        raise TypeError(f"{runner.name} is not on a device")
    return runner
