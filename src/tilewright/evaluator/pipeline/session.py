"""One evaluation under way: it owns lease, judge, runners and their closing."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from types import TracebackType
from typing import Self

from tilewright.errors import InfrastructureError
from tilewright.evaluator.context import EvaluationContext
from tilewright.evaluator.devices.device_memory import CONTEXT_BYTES, MemoryAccount
from tilewright.evaluator.devices.nvml import Conditions, conditions
from tilewright.evaluator.devices.recorded_environment import device_key
from tilewright.evaluator.judge_client.client import JudgeClient
from tilewright.evaluator.judge_client.gpu_messages import ReleaseDevice
from tilewright.evaluator.judge_client.messages import Forget
from tilewright.evaluator.processes.forkserver_client import Child
from tilewright.evaluator.processes.idle import IdleJudge
from tilewright.evaluator.runners.pool import RunnerPool
from tilewright.evaluator.timing.calibration import read_calibration
from tilewright.evaluator.verdict import Observations
from tilewright.records import Label, StageRecord
from tilewright.records.codes import Stage
from tilewright.records.problem_health import ProblemHealth


class EvaluationSession:
    """The state of one evaluation. Lifetime: its `with` block.

    After a block without an exception the session keeps the judge idle for the next candidate of
    its problem, and cacheable baselines with it. It ends all other processes. After an exception it
    ends all processes. It holds the device lease until then.
    """

    def __init__(self, context: EvaluationContext) -> None:
        self.context, self.host, self.request = context, context.host, context.request
        self.on_gpu = context.host.device.is_gpu
        self.judge = JudgeClient(context)
        self.runners = RunnerPool(context, self.judge)
        self.observations = Observations()
        self.memory = MemoryAccount()
        self.problem_health: ProblemHealth | None = None
        """The check of the problem; `None` until it was made or read."""
        key = device_key(self.host.cores, self.host.device)
        self.calibration = read_calibration(self.host.home, key, on_gpu=self.on_gpu)
        """The process-to-process variation of this device, measured or assumed."""
        self.precompiled: set[str] = set()
        """Implementations for which Triton's compiler has run, or tried to."""
        self._lease = ExitStack()
        self._started = time.monotonic()
        self._waited_s = 0.0
        """Wall seconds of waiting for others, which are no cost of the evaluation."""
        self.runners.deadline = self._started + self.request.limits.total_timeout_s

    def add_label(self, name: str, detail: str) -> None:
        """Attach a label to the report."""
        self.observations.labels.append(Label(name=name, detail=detail))

    @contextmanager
    def stage(self, name: str) -> Iterator[list[str]]:
        """Record a stage with its wall time and details, also when it ends the evaluation."""
        self.context.emit("stage", {"stage": name, "device": self.host.device.name})
        start, details = time.monotonic(), list[str]()
        try:
            yield details
        finally:
            wall_s = time.monotonic() - start
            record = StageRecord(name=name, wall_s=wall_s, detail=", ".join(details))
            self.observations.stages.append(record)

    def take_lease(self) -> None:
        """Wait until this evaluation has the device for itself; that time does not count."""
        with self.uncounted():
            self._lease.enter_context(self.host.lease(self._waiting, self.context.watch))

    @contextmanager
    def on_device(self) -> Iterator[None]:
        """Use the device without a claim about time: together with others that do so.

        It changes nothing while this evaluation has the device for itself.

        Raises:
            InfrastructureError: the judge was ended meanwhile, to make room for another evaluation.
        """
        with ExitStack() as stack:
            shared = not self.host.leased
            if shared:
                self._share_lease(stack)
                self.judge.without_device = partial(self._without_device, stack)
            try:
                yield
                if shared and self.on_gpu:
                    # The next holder of the device may time something.
                    self.judge.request(ReleaseDevice())
            except BaseException:
                # Its work must not go on when the lease has ended.
                if shared:
                    self.end_judge()
                raise
            finally:
                if shared:
                    self.judge.without_device = nullcontext

    def _share_lease(self, stack: ExitStack) -> None:
        with self.uncounted():
            lease = self.host.lease(self._waiting, self.context.watch, shared=True)
            stack.enter_context(lease)
        if self.judge.child is not None and not self.judge.running:
            raise InfrastructureError("the judge was ended to make room for another evaluation")

    @contextmanager
    def _without_device(self, stack: ExitStack) -> Iterator[None]:
        """Give the shared lease in `stack` back, and take it again after the block."""
        stack.close()
        yield
        self._share_lease(stack)

    def _waiting(self, text: str) -> None:
        self.context.emit("waiting", {"message": text})

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Take the time of a wait for others out of the time of this evaluation."""
        start = time.monotonic()
        yield
        waited_s = time.monotonic() - start
        self._waited_s += waited_s
        self.runners.deadline += waited_s

    @contextmanager
    def credited(self) -> Iterator[None]:
        """Take work that serves all candidates of the problem out of this one's total time."""
        start, waited_s = time.monotonic(), self._waited_s
        try:
            yield
        finally:
            # A wait for others is taken out already.
            waited_s = self._waited_s - waited_s
            self.runners.deadline += time.monotonic() - start - waited_s

    def record_conditions(self, when: str) -> Conditions | None:
        """Record the state of the GPU for the report; `None`: no GPU, or its driver is silent."""
        if not self.on_gpu:
            return None
        found = conditions(self.host.device.uuid)
        if found is not None:
            noted = {**dataclasses.asdict(found), "reasons": list(found.reasons)}
            self.observations.conditions[when] = noted
        return found

    def idle_key(self) -> str:
        """Return the key under which the judge of this request is kept idle."""
        request = self.request
        parts = (request.problem.digest(), request.protocol, request.rules.precision)
        # Baselines that are cached with the judge have as many queues as the candidate.
        queues = ("several streams",) * (self.on_gpu and self.context.several_streams)
        return "|".join((*parts, *queues, request.limits.to_json()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End or keep every process, then release the lease."""
        with self._lease:
            if kind is not None:
                self.abandon()
            else:
                try:
                    with self.stage(Stage.CLEANUP):
                        self._close()
                except BaseException:
                    self.abandon()
                    raise
        self.observations.isolation = self.runners.isolation
        self.observations.candidate_output = self.runners.candidate_output
        # The wall time outside the calls of candidate and baselines.
        wall_s, call_s = time.monotonic() - self._started, self.runners.call_s
        own_s = max(wall_s - call_s - self._waited_s, 0.0)
        detail = f"{call_s:.4f} s in calls, {own_s:.4f} s for all else"
        self.observations.stages.append(StageRecord(name=Stage.TOTAL, wall_s=wall_s, detail=detail))

    def _close(self) -> None:
        """End every runner but cached baselines; keep the judge for the next candidate."""
        host, pool = self.host, self.runners
        if not host.suspect:
            pool.release_to_cache(list(pool.runners))
        names = list(pool.runners)
        for name in names:
            pool.record_output(name)
            host.close_later(pool.runners.pop(name))
        # After a failure the state of the device is unknown: then no runner is kept.
        for runner in pool.cached.clear() if host.suspect else pool.cached.trim():
            names.append(runner.name)
            host.close_later(runner)
        if self.on_gpu:
            # The memory that they have mapped must not be freed before they have ended.
            host.wait_closed()
        if self.judge.running and self.judge.child is not None:
            self._keep_judge(self.judge.child, names)

    def _keep_judge(self, child: Child, names: list[str]) -> None:
        """Keep the judge idle for the next candidate; it forgets the runners `names`."""
        shared = not self.host.leased
        try:
            with self.on_device():
                self.host.prepared = None
                self.judge.request(Forget(runners=names, everything=True))
        except InfrastructureError:
            if not shared:
                raise
            # It was ended to make room, which changes no outcome.
            self.end_judge()
            return
        held = self._held_bytes() if self.on_gpu else 0
        self.host.idle_judges[self.idle_key()] = IdleJudge(child, self.runners.cached, held)
        self.judge.disconnect()

    def _held_bytes(self) -> int:
        """Return the memory of the device that the judge and its baselines keep."""
        if self.memory.before is None:
            # It ended before its candidate had a device.
            return self.memory.judge_bytes
        estimated = self.memory.estimated_bytes
        found = conditions(self.host.device.uuid)
        held = self.memory.used_by_evaluation(found, self.host.held_bytes)
        # Memory that other programs took meanwhile does not belong to this evaluation. Memory that
        # they released meanwhile hides some of ours, but each process has a context.
        contexts = CONTEXT_BYTES * (1 + len(self.runners.cached))
        return max(estimated if held is None else min(held, estimated), contexts)

    def abandon(self) -> None:
        """End every process at once; none of them is used again."""
        self.runners.abandon()
        self.end_judge()

    def end_judge(self) -> None:
        """End the judge at once; a later stage may start another."""
        self.host.prepared = None
        child = self.judge.disconnect()
        if child is not None:
            child.kill()
