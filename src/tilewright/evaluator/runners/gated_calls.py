"""One call of a GPU runner behind the judge's launch gate: a protocol of three processes.

    supervisor -> judge     QueueCall       close the gate, write inputs, record the first event
    supervisor -> runner    arm             queue the call behind the gate
    runner     -> page      DONE            the call is queued whole
    supervisor -> judge     CollectOutputs  queue the copy of the outputs, open the gate
    runner     -> supervisor result         its device has finished
    supervisor -> judge     FinishTimed     wait for the second event, compare, answer the seconds

A call that cannot be queued whole within `queue_timeout_s` waits for the device itself, or has
thousands of launches. Then `OpenGate` comes first, and the runner is stopped while the judge
queues the copy of its outputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.evaluator.judge_client.client import JudgeClient
from tilewright.evaluator.judge_client.gpu_messages import (
    AbandonCall,
    CollectOutputs,
    OpenGate,
    QueueCall,
)
from tilewright.evaluator.judge_client.messages import FinishTimed, PublishSample, TimedAnswer
from tilewright.evaluator.runners.gpu_runner import GpuRunner
from tilewright.evaluator.runners.messages import EvaluationEnded, Result
from tilewright.scoring import bootstrap
from tilewright.wire.frames import Fields, Tree

CALIBRATION_CALLS = 15
SETTLING_CALLS = 3
"""Calls of a known kernel whose median is the clock's excess, and calls before them that do not
count. Those first calls load code and raise the clock rate."""
EMPTY: Tree = {"t": "list", "v": []}
KNOWN_KERNEL: Fields = {
    "base": 0,
    "size": 0,
    "args": EMPTY,
    "grads": [],
    "grad_outputs": EMPTY,
    "forward_seed": 0,
    "expected": [],
}
"""The call of a runner that has no candidate yet: it launches a kernel of tilewright's own."""


@dataclass(frozen=True)
class GatedCall:
    """One gated call: seconds by the judge's events, the runner's report, the judge's answer."""

    seconds: float
    result: Result
    early: bool
    """Whether the gate opened before the call was queued whole."""
    answer: TimedAnswer

    @property
    def reported_s(self) -> float:
        """Return the seconds of the call by the runner's own events."""
        return (self.result.self_reported_us or 0.0) / 1e6


def gated_call(
    judge: JudgeClient,
    runner: GpuRunner,
    fields: Fields,
    publish: PublishSample | None = None,
    finish: FinishTimed | None = None,
    *,
    keep: bool = False,
    queued: bool = True,
) -> GatedCall:
    """Make one call behind the launch gate.

    Once the gate is open, the judge writes the inputs `publish`; `keep` lets it copy the outputs,
    and `finish` says what it does with them when the call has ended. Without `queued` the gate is
    open from the start, so launches are in the interval.
    """
    limit = runner.limits.call_timeout_s
    sequence = next(judge.context.host.sequences)
    finish = finish or FinishTimed(None)
    kept = finish.sample if keep else None
    closing = judge.send(QueueCall(runner.name, publish, sequence, kept))
    try:
        if not queued:
            closing.get()
            judge.request(OpenGate())
        # The runner queues the call while the judge queues what comes before it.
        runner.arm(fields, sequence)
        early = not runner.is_queued(runner.queue_timeout_s if queued else limit)
        if queued:
            closing.get()
        if early:
            judge.request(OpenGate())
            if not runner.is_queued(limit) or not runner.child.tree.freeze():
                raise runner.late()
        places = runner.output_addresses(len(fields["expected"]))
        collecting = judge.send(CollectOutputs(runner.name, kept, places))
        if early:
            collecting.get()
            runner.child.tree.resume()
        result = runner.result()
        if not early:
            collecting.get()
        # The outputs were copied when they were collected, so none are named here.
        answer = judge.request(replace(finish, wait_s=limit))
        if answer.seconds is None:
            raise runner.late()
    except EvaluationEnded:
        runner.child.kill()
        judge.drain()
        judge.request(AbandonCall(runner.name))
        raise
    return GatedCall(answer.seconds, result, early, answer)


def measure_clock_excess(judge: JudgeClient, runner: GpuRunner) -> float:
    """Return the seconds by which the judge's interval exceeds a kernel's own time.

    The runner has no candidate yet, so its own events can be trusted.
    """
    excess = []
    for _ in range(SETTLING_CALLS + CALIBRATION_CALLS):
        call = gated_call(judge, runner, KNOWN_KERNEL)
        excess.append(call.seconds - call.reported_s)
    return bootstrap.median(excess[SETTLING_CALLS:])
