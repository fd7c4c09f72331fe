"""The supervisor's handle of a GPU runner, and one call of it behind the judge's launch gate.

    supervisor -> judge     RenewSample     make new inputs, if they were not made before
    supervisor -> judge     QueueCall       close the gate, write inputs, record the first event
    supervisor -> runner    arm             queue the call behind the gate
    runner     -> page      DONE            the call is queued whole
    supervisor -> judge     CollectOutputs  queue the copy of the outputs, open the gate
    supervisor -> judge     FinishTimed     wait for the second event, compare, answer the seconds
    runner     -> supervisor result         its device has finished

A call that cannot be queued whole within `queue_timeout_s` waits for the device itself, or has
thousands of launches. Then `OpenGate` comes first, and the runner is stopped while the judge
queues the copy of its outputs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from tilewright.errors import ProblemError
from tilewright.evaluator.judge_client.client import JudgeClient
from tilewright.evaluator.judge_client.gpu_messages import (
    AbandonCall,
    CollectOutputs,
    OpenGate,
    QueueCall,
    SharedMemory,
)
from tilewright.evaluator.judge_client.messages import (
    FinishTimed,
    PublishSample,
    RenewSample,
    SampleRenewed,
    TimedAnswer,
)
from tilewright.evaluator.runners.build_requests import BuildRequested
from tilewright.evaluator.runners.call_limit import CallLimit
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.host_call import EMPTY_CALL
from tilewright.evaluator.runners.messages import EvaluationEnded, Mapped, Result, Traced
from tilewright.records import KernelTime
from tilewright.scoring import bootstrap
from tilewright.wire import sync_page
from tilewright.wire.frames import Fields

QUEUE_TIMEOUT_S = 0.01
"""Seconds that a runner may take to queue a whole call before the launch gate opens anyway."""
LIBRARIES = (
    *("at::", "cub::", "cublas", "cudnn", "cutlass", "nvjet", "gemm", "cufft", "Memcpy", "Memset"),
)
"""Parts of the names of kernels that belong to torch and to NVIDIA's libraries."""
COLD_CALL_FACTOR = 3.0
"""The first call of a process or a case may take so many times as long. A cold disk took more than
10 s to load cuBLAS, and Triton compiles for sizes that it has not seen."""
CALIBRATION_CALLS = 15
SETTLING_CALLS = 3
"""Calls of a known kernel whose median is the clock's excess, and calls before them that do not
count. Those first calls load code and raise the clock rate."""


class GpuRunner(Runner):
    """One runner on a GPU. The judge owns all memory that it shares."""

    clock_excess_s = 0.0
    """Seconds of the judge's interval that are no work of the call; measured before a candidate is
    loaded."""
    queue_timeout_s = QUEUE_TIMEOUT_S
    """Seconds for which this runner may queue a call before the launch gate opens. With 0 the gate
    opens at once, so that its times include launches."""
    was_early = False
    """Whether the gate opened before the last call was queued whole."""
    _case = ""

    def expect_case(self, case: str) -> None:
        """Give the first call of a case more time: it may load libraries and compile."""
        if case != self._case:
            self.call_timeout_s = self.limits.call_timeout_s * COLD_CALL_FACTOR
        self._case = case

    def map(self, shared: SharedMemory, library: str, *, tf32: bool) -> Mapped:
        """Let the runner map what the judge shares; return the addresses that it reports."""
        first = not self.inputs_bytes
        self.inputs_bytes = shared.inputs
        fields = {**shared.fields(), "library": library, "tf32": tf32}
        frame = self.ask("map", fields, fds=(self.page.fd,) if first else ())
        return self._read("mapped", frame, Mapped)

    def arm(self, fields: Fields, sequence: int) -> None:
        """Ask for one gated call, without waiting for anything."""
        self._sequence = sequence
        self.page.flags[sync_page.DONE] = 0
        wait_s = self.call_timeout_s
        self._send("arm", {**fields, "sequence": sequence, "wait_s": wait_s, "held": self.held})

    def is_queued(self, within_s: float) -> bool:
        """Wait until the call is queued whole; `False` when that takes longer."""
        limit = time.monotonic() + within_s
        flags = self.page.flags
        while flags[sync_page.DONE] != self._sequence:
            if self._poll.poll(0) and flags[sync_page.DONE] != self._sequence:
                frame = self.receive(limit)
                raise self._forged(f"{frame.kind!r} before the call was queued")
            if time.monotonic() > limit:
                return False
            self._watch()
            self.page.pause()
        return True

    def result(self) -> Result:
        """Return the runner's report of the call, once its device has finished it."""
        frame = self.receive(time.monotonic() + self.call_timeout_s)
        self.call_timeout_s = self.limits.call_timeout_s
        return self._read("result", frame, Result)

    def waited_call(self, fields: Fields, sequence: int) -> tuple[float, Result]:
        """Make one call as a Python caller would; return its seconds by the supervisor's clock.

        It lasts from the release until the runner reports that its device has finished. Because
        the report is the runner's own, no ratio is computed from it.
        """
        limit, flags = CallLimit(self.child.tree, self.call_timeout_s), self.page.flags
        flags[sync_page.DONE] = 0
        self._send("wait", {**fields, "sequence": sequence, "wait_s": self.call_timeout_s})
        self._spin(sync_page.READY, sequence, limit)
        start = time.perf_counter()
        flags[sync_page.GO] = sequence
        self._spin(sync_page.DONE, sequence, limit)
        return time.perf_counter() - start, self.result()

    def traced(self, fields: Fields, timeout_s: float) -> list[KernelTime]:
        """Return the kernels of one call, as the runner's own profiler reports them."""
        frame = self.ask("trace", fields, timeout_s=timeout_s)
        return [
            KernelTime(**item.model_dump(), library=any(mark in item.name for mark in LIBRARIES))
            for item in self._read("traced", frame, Traced).kernels
        ]


@dataclass(frozen=True)
class GatedCall:
    """One gated call: seconds by the judge's events, the runner's report, the judge's answer."""

    seconds: float
    result: Result
    early: bool
    """Whether the gate opened before the call was queued whole."""
    queued_s: float
    """Seconds from the request until the runner reported that the call was queued."""
    answer: TimedAnswer
    renewed: SampleRenewed | None = None
    """The answer to the request for new inputs, if it was sent with the call."""

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
    renewal: RenewSample | None = None,
    keep: bool = False,
    queued: bool = True,
) -> GatedCall:
    """Make one call behind the launch gate.

    Once the gate is open, the judge writes the inputs `publish`, which it makes first if there is a
    `renewal`. `keep` lets it copy the outputs, and `finish` says what it does with them at the end.
    Without `queued` the gate is open from the start, so launches are in the interval.
    """
    limit = runner.call_timeout_s
    sequence = next(judge.context.host.sequences)
    finish = finish or FinishTimed(None)
    kept = finish.sample if keep else None
    renewing = None if renewal is None else judge.send(renewal)
    closing = judge.send(QueueCall(runner.name, publish, sequence, kept))
    try:
        if not queued:
            closing.get()
            judge.request(OpenGate())
        # The runner queues the call while the judge makes inputs and queues what comes before it.
        armed_at = time.perf_counter()
        runner.arm(fields, sequence)
        early = not runner.is_queued(runner.queue_timeout_s if queued else limit)
        queued_s = time.perf_counter() - armed_at
        if queued:
            closing.get()
        if early:
            judge.request(OpenGate())
            if not runner.is_queued(limit):
                raise runner.late()
            runner.stop()
        outputs = runner.reported_outputs(len(fields["expected"]))._asdict()
        collecting = judge.send(CollectOutputs(runner.name, kept, **outputs))
        if early:
            collecting.get()
            runner.child.tree.resume()
        # The outputs were copied when they were collected, so they are not kept again.
        # A device has no memory for earlier outputs: the caller gives them back at once.
        finish = replace(finish, **outputs, call=sequence, dropped=[sequence], keep=False)
        # The judge compares while the runner describes its outputs.
        finishing = judge.send(replace(finish, wait_s=limit))
        result = runner.result()
        answer = finishing.get()
        if answer.seconds is None:
            raise runner.late()
    except (EvaluationEnded, BuildRequested, ProblemError):
        _abandon(judge, runner)
        raise
    renewed = None if renewing is None else renewing.get()
    return GatedCall(answer.seconds, result, early, queued_s, answer, renewed)


def _abandon(judge: JudgeClient, runner: GpuRunner) -> None:
    """End a runner in the middle of a call, and free the judge of that call."""
    runner.child.kill()
    # Before the open answers are received: this request ends the judge's wait for the call.
    judge.send(AbandonCall(runner.name))
    judge.drain()


def measure_clock_excess(judge: JudgeClient, runner: GpuRunner) -> float:
    """Return the seconds by which the judge's interval exceeds a kernel's own time.

    The runner has no candidate yet, so its own events can be trusted.
    """
    count = SETTLING_CALLS + CALIBRATION_CALLS
    calls = [gated_call(judge, runner, EMPTY_CALL) for _ in range(count)]
    return bootstrap.median([call.seconds - call.reported_s for call in calls[SETTLING_CALLS:]])
