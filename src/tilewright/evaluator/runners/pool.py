"""The runners of one evaluation: started, called, cached, stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tilewright.evaluator.context import EvaluationContext
from tilewright.evaluator.devices.toolchain import pool_library
from tilewright.evaluator.judge_client.client import InputSampleInfo, JudgeClient
from tilewright.evaluator.judge_client.gpu_messages import MemoryMapped, RenameRunner, ShareMemory
from tilewright.evaluator.judge_client.messages import (
    ApplyWeights,
    CallAnswer,
    CheckOutputs,
    FinishTimed,
    Forget,
    MapInputs,
    MatchWeights,
    PlanWeights,
    ProblemLoaded,
    PublishInit,
    PublishSample,
    PublishWeights,
    ResetWeights,
    TimedAnswer,
)
from tilewright.evaluator.processes.forkserver_client import Child
from tilewright.evaluator.processes.idle import RunnerCache
from tilewright.evaluator.runners.build_requests import LOADING, MAX_REQUESTS, BuildRequests
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.gpu_runner import GpuRunner, gated_call, measure_clock_excess
from tilewright.evaluator.runners.host_call import host_call, measure_empty_call
from tilewright.evaluator.runners.messages import EvaluationEnded, Result
from tilewright.records import Candidate, IsolationStatus
from tilewright.records.codes import UnjudgedReason
from tilewright.records.request import COMPILE_MODES
from tilewright.wire.builder_calls import split_key
from tilewright.wire.frames import Fields
from tilewright.wire.names import IsolationLayer

SLOTS = 3
"""Places in the input memory at which inputs arrive, used in turn or at random: a candidate cannot
know an address before the call."""
MIN_INIT_BYTES = 4096
"""Bytes of input memory that each runner gets at least, so that there is a page to map."""


@dataclass(frozen=True)
class Build:
    """The result of a candidate's build: the loader of its kind, and files by name."""

    loader: str
    artifacts: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckedCall:
    """The runner's report of one call, and what the judge found."""

    result: Result
    answer: CallAnswer


class RunnerPool:
    """The runners of one evaluation by name. Lifetime: the evaluation.

    Attributes:
        deadline: on `time.monotonic`; the pool waits for no runner's answer after it.
        output_bytes: bytes of device memory for outputs outside the runner's allocator.
        allocator_bytes: bytes of device memory in which a runner's calls allocate.
        call_s: wall seconds spent in calls of candidate and baselines.
        isolation: the isolation layers of the newest child, active or not.
    """

    def __init__(self, context: EvaluationContext, judge: JudgeClient) -> None:
        self.context = context
        self.judge = judge
        self.problem = ProblemLoaded(init={}, init_bytes=0, is_module=False)
        self.runners: dict[str, Runner] = {}
        judge.neighbours = self.runners
        self.cached: RunnerCache[Runner] = RunnerCache()
        self.builds: dict[str, Build] = {}
        self._started: set[str] = set()
        """Implementations of which a process has run: a later one may ask for no build."""
        self.deadline = float("inf")
        self.output_bytes = 0
        self.allocator_bytes = 0
        self.weights_bytes = 0
        self.call_s = 0.0
        self.isolation: tuple[IsolationStatus, ...] = ()
        self.candidate_output = ""
        self.tf32 = context.request.allows_tf32
        """Whether float32 products of runners on a GPU may be rounded to tf32."""
        self.usable_variations: dict[str, list[str]] = {}
        """Input variations that timed calls of each case may get; the reference accepts them."""
        self.peaked: set[str] = set()
        """Cases whose reference accepts uneven parts with a peak."""

    def start(
        self, name: str, candidate: Candidate, *, build: str = "", suppression: Fields | None = None
    ) -> Runner:
        """Start a runner, check its isolation, and load a candidate into it.

        `build` names the build to load, if it is not that of `name`. `suppression` are fields of
        the request to load that suppress the candidate's own launches.
        """
        host, limits = self.context.host, self.context.request.limits
        streams = self.context.several_streams
        child = host.spawn("runner", limits, candidate.allow_imports, streams=streams)
        if name in COMPILE_MODES:
            # Its first call compiles, which is a build.
            limits = limits.model_copy(update={"call_timeout_s": limits.build_s})
        kind = GpuRunner if host.device.is_gpu else Runner
        # The same seed for all: their callers hold as many outputs.
        given = (self.deadline, host.cores.threads, self.context.seed("held"))
        runner = kind(name, child, limits, self.watch, *given)
        if not host.cores.separate:
            runner.page.share_core()
        runner.builds = self._build_requests(name, again=bool(build))
        self.runners[name] = runner
        child.wait_ready()
        if host.device.is_gpu:
            child.begin()
        self.record_isolation(child)
        self.reserve_inputs(runner, max(self.problem.init_bytes, MIN_INIT_BYTES))
        if not host.device.is_gpu:
            runner.empty_call_s = measure_empty_call(runner)
        self.judge.request(PublishInit(name))
        fields, body = self._load_fields(build or name, candidate)
        fields |= suppression or {}
        fields["compile"] = COMPILE_MODES.get(name)
        runner.builds.begin(LOADING)
        runner.load(fields, body)
        runner.builds.end(LOADING)
        return runner

    def _build_requests(self, name: str, *, again: bool) -> BuildRequests:
        """Return what a runner may ask for: nothing, unless it is the first of its name.

        The problem's own reference may never ask.
        """
        baselines = self.context.request.baselines
        asks = {"candidate", *(one.name for one in baselines if one.candidate)}
        if again or name not in asks & set(self.builds) or name in self._started:
            return BuildRequests(name)
        self._started.add(name)
        made = sum(build.implementation == name for build in self.context.requested)
        built = [split_key(key)[0] for key in self.builds[name].artifacts]
        # Only the candidate gains from what it asks for; a baseline's calls may all be timed ones.
        return BuildRequests(name, MAX_REQUESTS - made, built, always=name != "candidate")

    def watch(self) -> None:
        """Check that the client is there; kill each runner that holds too much memory."""
        self.context.watch()
        for runner in self.runners.values():
            runner.excess()

    def _load_fields(self, build: str, candidate: Candidate) -> tuple[Fields, bytes]:
        context, built = self.context, self.builds.get(build, Build("python"))
        parts = [(item.path, item.data) for item in candidate.files]
        libraries = {key: f"lib_{index}.so" for index, key in enumerate(built.artifacts)}
        parts += [(libraries[key], data) for key, data in built.artifacts.items()]
        fields: Fields = {
            "loader": built.loader,
            "entry": candidate.entry,
            "keywords": list(context.request.problem.keyword_args),
            "mode": context.request.problem.mode,
            "init_seed": context.seed("init") & 0x7FFFFFFF,
            "init": self.problem.init,
            "init_bytes": self.problem.init_bytes,
            "files": [{"path": path, "size": len(data)} for path, data in parts],
            "artifacts": libraries,
            "suppressed": False,
            "import_paths": list(candidate.allow_imports),
            "threads": context.host.cores.threads,
        }
        return fields, b"".join(data for _, data in parts)

    def record_isolation(self, child: Child) -> None:
        """Record the isolation layers of a child."""
        self.isolation = tuple(
            IsolationStatus(name=layer, active=not reason, detail=reason)
            for layer, reason in child.applied.items()
            # On a GPU's clock, work in other processes gains nothing.
            if layer != IsolationLayer.PROCESS_CREATION_GUARD or not self.context.host.device.is_gpu
        )
        active = {item.name for item in self.isolation if item.active}
        required = self.context.request.require_isolation
        missing = [layer for layer in required if layer not in active]
        if missing:
            message = "; ".join(f"{layer}: {child.applied.get(layer)}" for layer in missing)
            raise EvaluationEnded.unjudged(UnjudgedReason.ISOLATION_UNAVAILABLE, message)

    def reserve_inputs(self, runner: Runner, size: int, heap: int = 0) -> None:
        """Give a runner input memory of at least `size` bytes, which the judge can write.

        On a CPU it also gets `heap` bytes of free memory for its outputs.
        """
        if heap and not isinstance(runner, GpuRunner):
            runner.grow_heap(heap)
        if size <= runner.inputs_bytes:
            return
        if isinstance(runner, GpuRunner):
            self._share(runner, size)
            return
        fds = runner.reserve_inputs(size)
        try:
            if fds:
                self.judge.request(MapInputs(runner.name, runner.base, fds))
        finally:
            for fd in fds:
                os.close(fd)

    def _share(self, runner: GpuRunner, size: int) -> None:
        """Let the judge allocate device memory, and the runner map it."""
        first = not runner.inputs_bytes
        shared = self.judge.request(
            ShareMemory(runner.name, size, self.output_bytes, self.allocator_bytes)
        )
        library = str(pool_library(self.context.host.home))
        mapped = runner.map(shared, library, tf32=self.tf32)
        self.judge.request(MemoryMapped(runner.name, mapped.base, mapped.inputs))
        if first:
            runner.clock_excess_s = measure_clock_excess(self.judge, runner)

    def publish(self, runner: Runner, sample: InputSampleInfo, slot: int) -> None:
        """Write an input sample into a runner's input memory at `slot`."""
        self.judge.request(PublishSample(sample.name, runner.name, slot * sample.slot_bytes))

    def call(self, runner: Runner, sample: InputSampleInfo, slot: int) -> CheckedCall:
        """Let a runner compute on an input sample, and the judge compare what it wrote."""
        self.reserve_inputs(runner, SLOTS * sample.slot_bytes)
        base, fields = slot * sample.slot_bytes, sample.call_fields(slot)
        publish = PublishSample(sample.name, runner.name, base)
        finish = FinishTimed(sample.name, runner.name, base, keep=True)
        runner.builds.begin(sample.case)
        start = time.monotonic()
        seen: TimedAnswer
        if isinstance(runner, GpuRunner):
            runner.expect_case(sample.case)
            on_device = gated_call(self.judge, runner, fields, publish, finish, keep=True)
            seen, result = on_device.answer, on_device.result
        else:
            on_host = host_call(self.judge, runner, fields, publish, finish)
            seen, result = on_host.answer, on_host.timing.result
        self.call_s += time.monotonic() - start
        runner.builds.end(sample.case)
        answer = self.compare(runner, sample, result)
        answer = replace(answer, mutated=seen.mutated, misplaced=seen.misplaced)
        return CheckedCall(result, answer)

    def compare(self, runner: Runner, sample: InputSampleInfo, result: Result) -> CallAnswer:
        """Let the judge compare the outputs of the runner's last call with those of a sample."""
        outputs = [item.described() for item in result.outputs]
        return self.judge.request(CheckOutputs(sample.name, runner.name, outputs))

    def count_operators(self, runner: Runner, sample: InputSampleInfo) -> Result:
        """Make a call whose operators are counted; all of its result is self-reported."""
        self.publish(runner, sample, 0)
        start = time.monotonic()
        result = runner.call({**sample.call_fields(0), "count_operators": True})
        self.call_s += time.monotonic() - start
        return result

    def load_weights(self, name: str) -> list[str]:
        """Load new weights into a runner and the reference; return names that the runner lacks."""
        self._match_weights(name)
        applied = self.judge.request(ApplyWeights([name]))
        self.weights_bytes = applied.bytes
        self._publish_weights(name)
        return applied.lacking

    def match_and_publish(self, name: str) -> None:
        """Load the weights that are applied already into one more runner."""
        if self.has_weights:
            self._match_weights(name)
            self._publish_weights(name)
        elif self.has_buffers:
            self.load_initial_buffers(name)

    def load_initial(self, name: str) -> None:
        """Leave a runner its initial weights, and load the buffers that the problem declares."""
        if self.has_buffers:
            self.load_initial_buffers(name)

    def load_initial_buffers(self, name: str) -> None:
        """Load the buffers that the problem declares into a runner, with their initial values."""
        self.judge.request(ResetWeights())
        self._match_weights(name, initial=True)
        self.weights_bytes = self.judge.request(ApplyWeights([name])).bytes
        self._publish_weights(name)

    def _match_weights(self, name: str, *, initial: bool = False) -> None:
        """Let the judge find out which of a runner's weights are which of the reference's."""
        runner, seed = self.runners[name], self.context.seed("weights")
        plan = self.judge.request(PlanWeights(name, seed, initial, runner.entries))
        if plan.need:
            places = runner.read_weights(plan.need)
            self.judge.request(MatchWeights(name, plan.need, places))

    def _publish_weights(self, name: str) -> None:
        runner = self.runners[name]
        self.reserve_inputs(runner, self.weights_bytes)
        tree = self.judge.request(PublishWeights(name)).tree
        timeout_s = self.context.request.limits.load_s
        runner.ask("weights", {"tree": tree, "base": 0}, timeout_s=timeout_s)

    def release_to_cache(self, names: Iterable[str]) -> None:
        """Cache those runners that later candidates can use, each under a name of its own.

        On a GPU these are the processes of the problem's own reference.
        """
        if not self.context.host.device.is_gpu:
            return
        own = {item.name for item in self.context.request.baselines if item.candidate is None}
        for name in [name for name in names if name in own and name in self.runners]:
            runner = self.runners.pop(name)
            self._rename(runner, f"{name}, process {runner.child.pid}")
            self.cached.release(name, runner)

    def acquire_from_cache(self, name: str) -> bool:
        """Make a cached runner the runner `name`; tell whether there was one."""
        runner = self.cached.acquire(name)
        if runner is None:
            return False
        self._rename(runner, name)
        runner.serve(self.watch, self.deadline)
        self.runners[name] = runner
        return True

    def _rename(self, runner: Runner, name: str) -> None:
        self.judge.request(RenameRunner(runner.name, name))
        runner.name = name

    def stop(self, name: str) -> None:
        """End a runner, keep what it printed, and let the judge forget its memory."""
        self.record_output(name)
        runner = self.runners.pop(name, None)
        if runner is not None:
            runner.close()
            if self.judge.running:
                self.judge.request(Forget(runners=[name]))

    def stop_or_cache(self, names: Iterable[str], *, keep: bool) -> None:
        """End the runners of `names`; with `keep`, cache those that can be used again.

        On a GPU as many runners are forked at the same time as end.
        """
        if keep:
            self.release_to_cache(names)
        ending = [name for name in names if name in self.runners]
        for name in ending:
            self.runners[name].child.kill_async()
        host = self.context.host
        preforks = host.device.is_gpu and not self.context.several_streams
        if preforks:
            # Without the device, so that they start while those that they replace end.
            limits = self.context.request.limits
            host.preforked.fill(limits, {"runner": len(ending)}, opened=False)
        for name in ending:
            self.stop(name)
        if preforks:
            host.preforked.open_now()

    def record_output(self, name: str) -> None:
        """Keep what the candidate printed."""
        if name == "candidate" and name in self.runners:
            self.candidate_output = self.runners[name].child.output.text()

    @property
    def has_weights(self) -> bool:
        """Whether new weights are loaded: modules under the protocol `strict`."""
        return self.problem.is_module and self.context.request.protocol == "strict"

    @property
    def has_buffers(self) -> bool:
        """Whether the problem declares buffers, which every protocol loads."""
        return bool(self.context.request.problem.buffers)

    def abandon(self) -> None:
        """End every runner at once; none of them is used again."""
        for runner in self.runners.values():
            runner.child.kill_async()
        for runner in self.runners.values():
            runner.close()
        self.runners.clear()
        self.cached.close()
