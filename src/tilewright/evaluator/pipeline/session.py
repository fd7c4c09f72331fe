"""The state of one evaluation: the judge, the sides, and what has been seen so far."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tilewright.errors import InfrastructureError, ProblemError
from tilewright.evaluator.devices.allocator_library import pool_library
from tilewright.evaluator.devices.devices import FEW_QUEUES
from tilewright.evaluator.devices.nvml import Conditions, conditions
from tilewright.evaluator.judge_client.input_sample import Answer, InputSampleInfo
from tilewright.evaluator.processes.forkserver_client import Child, answer, tell
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.ended import EvaluationEnded
from tilewright.evaluator.runners.gpu_runner import GpuRunner
from tilewright.evaluator.runners.idle import RunnerCache
from tilewright.evaluator.runners.messages import Result
from tilewright.evaluator.seeds import derive, generator
from tilewright.evaluator.timing.calibration import DEFAULT, Calibration
from tilewright.evaluator.timing.gpu_clock import calibrate
from tilewright.languages.stream_use import names_streams
from tilewright.records import (
    Candidate,
    Case,
    CaseResult,
    Ceilings,
    EvalRequest,
    Protection,
    StageRecord,
    Unjudged,
    Work,
)
from tilewright.wire.frames import DeadlineExceeded, Frame
from tilewright.wire.names import IsolationLayer

__all__ = ["SLOTS", "EvaluationSession"]

SLOTS = 3
"""Addresses at which inputs arrive: a ring, used again from its start."""
MIN_JUDGE_TIMEOUT_S = 30.0
"""The judge has at least this long for an answer, however short the candidate's limits are."""
COMPILE_MODES = {"compile": "default", "max-autotune": "max-autotune"}
"""Baselines that torch compiles, and how."""
Emit = Callable[[str, dict[str, Any]], None]


@dataclass
class EvaluationSession:
    """One request under way. `emit` reports progress; everything else is filled stage by stage."""

    host: DeviceHost
    request: EvalRequest
    root: str
    emit: Emit
    watch: Callable[[], None]
    judge: Child | None = None
    unanswered: list[str] = field(default_factory=list)
    """What the judge was asked and has not answered yet."""
    init_tree: dict[str, Any] = field(default_factory=dict)
    init_bytes: int = 0
    is_module: bool = False
    has_weights: bool = False
    """Whether new weights are drawn and loaded: modules under `strict`."""
    waited_s: float = 0.0
    """Wall seconds spent waiting for the device lease, which are nobody's cost."""
    deadline: float = float("inf")
    """On `time.monotonic`; after it no answer of a side is waited for any longer."""
    weights_bytes: int = 0
    reserve_bytes: int = 0
    """Room on a device for outputs that do not lie in the pool."""
    pool_bytes: int = 0
    """Room on a device in which a side's calls allocate."""
    runners: dict[str, Runner] = field(default_factory=dict)
    cached: RunnerCache = field(default_factory=RunnerCache)
    """Baselines that are alive and not in use."""
    cases: list[CaseResult] = field(default_factory=list)
    stages: list[StageRecord] = field(default_factory=list)
    protections: tuple[Protection, ...] = ()
    artifacts: dict[str, dict[str, bytes]] = field(default_factory=dict)
    compiled: set[str] = field(default_factory=set)
    """Who was compiled ahead, or tried to be."""
    loaders: dict[str, str] = field(default_factory=dict)
    conditions: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What the driver said of the GPU, by moment, and what contestants have of it."""
    calibration: Calibration = DEFAULT
    work: list[Work] = field(default_factory=list)
    ceilings: Ceilings | None = None
    printed: str = ""
    call_s: float = 0.0
    """Wall seconds spent in calls of candidate and baselines, to tell our own cost apart."""
    _samples: int = 0

    @cached_property
    def several_streams(self) -> bool:
        """Whether a side may use several streams of a device; all sides get queues for it then."""
        problem, baselines = self.request.problem, self.request.baselines
        loaded = [self.request.candidate, *(one.candidate for one in baselines if one.candidate)]
        return (
            # What torch compiles may be replayed as a graph.
            any(one.name in COMPILE_MODES for one in baselines)
            or any(one.allow_imports for one in loaded)
            or names_streams([problem.source, *(file for one in loaded for file in one.files)])
        )

    def seed(self, *names: object) -> int:
        """Return the seed of `names` under this evaluation's secret root."""
        return derive(self.root, *names)

    @contextmanager
    def stage(self, name: str) -> Iterator[list[str]]:
        """Record a stage, its time and what is said of it, also when it ends the evaluation."""
        self.emit("stage", {"stage": name})
        start, said = time.monotonic(), list[str]()
        try:
            yield said
        finally:
            wall_s = time.monotonic() - start
            self.stages.append(StageRecord(name=name, wall_s=wall_s, detail=", ".join(said)))

    def ask(
        self,
        kind: str,
        fields: dict[str, Any],
        *,
        body: bytes = b"",
        fds: tuple[int, ...] = (),
        timeout_s: float = 120.0,
    ) -> dict[str, Any]:
        """Ask the judge.

        Raises:
            ProblemError: the problem's own code failed.
            InfrastructureError: the judge was lost; the evaluation may be repeated.
        """
        self.tell(kind, fields, body=body, fds=fds)
        return self.answered(timeout_s)

    def tell(
        self, kind: str, fields: dict[str, Any], *, body: bytes = b"", fds: tuple[int, ...] = ()
    ) -> None:
        """Ask the judge, and go on; `answered` returns what it says."""
        if self.judge is None:
            raise InfrastructureError("the judge is not running")
        tell(self.judge, kind, fields, body, fds)
        self.unanswered.append(kind)

    def answered(self, timeout_s: float = 120.0) -> dict[str, Any]:
        """Return the answer to the oldest question that is open; raise as `ask` does."""
        if self.judge is None:
            raise InfrastructureError("the judge is not running")
        kind = self.unanswered.pop(0)
        timeout_s = min(timeout_s, max(self.request.limits.total_timeout_s, MIN_JUDGE_TIMEOUT_S))
        try:
            frame: Frame = answer(self.judge, kind, timeout_s, self.watch)
        except InfrastructureError as error:
            if not isinstance(error.__cause__, DeadlineExceeded):
                raise
            # It lives and is in the problem's code; another judge would not come out of it either.
            raise ProblemError(
                f"{self.request.problem.id}: its code did not come to an end within {timeout_s:g} s"
            ) from error
        if frame.kind == "problem_failed":
            crowded = "out of memory" in frame.fields["message"].lower()
            if crowded and self.host.end_idle():
                raise InfrastructureError("judges of other problems took the device's memory")
            raise ProblemError(f"{self.request.problem.id}: {frame.fields['message']}")
        if frame.kind != "answer":
            raise InfrastructureError(f"the judge answered {frame.kind!r} to {kind!r}")
        return frame.fields

    def reserve_inputs(self, runner: Runner, inputs: int) -> None:
        """Give a side and the judge a shared input arena of at least this size."""
        if isinstance(runner, GpuRunner):
            self._share(runner, inputs)
            return
        fds = runner.reserve_inputs(inputs)
        if fds is None:
            return
        fields = {"runner": runner.name, "inputs": runner.inputs_bytes, "input_copy": runner.base}
        try:
            self.ask("map", fields, fds=fds)
        finally:
            for fd in fds:
                os.close(fd)

    def _share(self, runner: GpuRunner, inputs: int) -> None:
        """Have the judge allocate on the device, and the side map it."""
        if inputs <= runner.inputs_bytes:
            return
        first = not runner.inputs_bytes
        fields = {"runner": runner.name, "inputs": inputs, "reserve": self.reserve_bytes}
        shared = self.ask("share", {**fields, "pool": self.pool_bytes})
        library = str(pool_library(self.host.home))
        base = runner.map(shared, library, tf32=self.request.allows_tf32)
        if first:
            self.ask("mapped", {"runner": runner.name, "base": base})
            runner.clock_excess_s = calibrate(self, runner)

    def sample(
        self, case: Case, variation: str, repeat: int = 0, *, timed: bool = False
    ) -> InputSampleInfo:
        """Have the judge draw inputs; nothing of them reaches a side yet.

        With `timed` they are for timed calls alone: what those are held against is made each time.
        """
        self._samples += 1
        name = f"{self._samples}"
        seed = self.seed("inputs", case.name, variation, repeat)
        forward_seed = self.seed("forward", repeat) & 0x7FFFFFFF
        fields = {
            "sample": name,
            "params": dict(case.params),
            "variation": variation,
            "seed": seed,
            "forward_seed": forward_seed,
            "timed": timed,
        }
        answer = self.ask("sample", fields)
        answer.pop("structure")
        return InputSampleInfo(
            name=name,
            case=case.name,
            variation=variation,
            seed=seed,
            forward_seed=forward_seed,
            **answer,
        )

    def fields_of(self, sample: InputSampleInfo, slot: int) -> dict[str, Any]:
        """Return the call fields of a draw published at `slot`."""
        return {
            "base": slot * sample.slot_bytes,
            "size": sample.size,
            "args": sample.tree,
            "grads": sample.grads,
            "grad_outputs": sample.grad_outputs,
            "forward_seed": sample.forward_seed,
            "expected": sample.outputs,
        }

    def publish(self, runner: Runner, sample: InputSampleInfo, slot: int) -> None:
        """Write a draw into a side's arena at `slot`."""
        fields = {"sample": sample.name, "runner": runner.name, "base": slot * sample.slot_bytes}
        self.ask("publish", fields)

    def check(self, runner: Runner, sample: InputSampleInfo, slot: int, result: Result) -> Answer:
        """Have the judge compare what a side wrote, and what it overwrote."""
        answer = self.ask(
            "check",
            {
                "sample": sample.name,
                "runner": runner.name,
                "base": slot * sample.slot_bytes,
                "outputs": [item.described() for item in result.outputs],
            },
        )
        return Answer(answer["wrong"], answer["message"], answer["error"], tuple(answer["mutated"]))

    def call(
        self, runner: Runner, sample: InputSampleInfo, slot: int, *, count_operators: bool = False
    ) -> Result:
        """Publish a draw and have a side compute it."""
        self.reserve_inputs(runner, SLOTS * sample.slot_bytes)
        self.publish(runner, sample, slot)
        start = time.monotonic()
        result = runner.call({**self.fields_of(sample, slot), "count_operators": count_operators})
        self.call_s += time.monotonic() - start
        return result

    def forget(self, sample: InputSampleInfo) -> None:
        """Let the judge drop a draw."""
        self.ask("forget", {"samples": [sample.name]})

    def start_runner(self, name: str, candidate: Candidate, *, suppressed: bool = False) -> Runner:
        """Start a contestant, check its layers, and load a candidate into it.

        Raises:
            Ended: the candidate failed to load, or a required layer is not active.
        """
        limits = self.request.limits
        streams = self.several_streams
        child = self.host.spawn("runner", limits, candidate.allow_imports, streams=streams)
        if name in COMPILE_MODES:
            # Its first call compiles, which is a build.
            limits = limits.model_copy(update={"call_timeout_s": limits.build_s})
        kind = GpuRunner if self.host.device.is_gpu else Runner
        runner = kind(name, child, limits, self.watch, self.deadline, self.host.cores.threads)
        self.runners[name] = runner
        child.wait_ready()
        if self.host.device.is_gpu:
            child.begin()
            self.conditions["runners"] = {"queues": None if streams else FEW_QUEUES}
        self.record_isolation(child)
        self.reserve_inputs(runner, max(self.init_bytes, 4096))
        self.ask("publish_init", {"runner": name})
        fields, body = self._load_fields(name, candidate, suppressed=suppressed)
        frame = runner.load(fields, body)
        runner.entries = runner.weight_entries(frame)
        return runner

    def record_isolation(self, child: Child) -> None:
        """Record which layers hold; end the evaluation where a demanded one does not."""
        self.protections = tuple(
            Protection(name=layer, active=not reason, detail=reason)
            for layer, reason in child.applied.items()
            # By a device's clock nothing is gained from work in other processes.
            if layer != IsolationLayer.PROCESS_CREATION_GUARD or not self.host.device.is_gpu
        )
        active = {item.name for item in self.protections if item.active}
        missing = [layer for layer in self.request.require_isolation if layer not in active]
        if missing:
            message = "; ".join(f"{layer}: {child.applied.get(layer)}" for layer in missing)
            raise EvaluationEnded(Unjudged(reason="isolation_unavailable", message=message))

    def _load_fields(
        self, name: str, candidate: Candidate, *, suppressed: bool
    ) -> tuple[dict[str, Any], bytes]:
        built = self.artifacts.get(name.removesuffix("-knockout"), {})
        parts = [(item.path, item.text.encode()) for item in candidate.files]
        libraries = {key: f"lib_{index}.so" for index, key in enumerate(built)}
        parts += [(libraries[key], data) for key, data in built.items()]
        fields = {
            "loader": self.loaders.get(name.removesuffix("-knockout"), "python"),
            "entry": candidate.entry,
            "other_entries": [],
            "keywords": list(self.request.problem.keyword_args),
            "mode": self.request.problem.mode,
            "init_seed": self.seed("init") & 0x7FFFFFFF,
            "init": self.init_tree,
            "files": [{"path": path, "size": len(data)} for path, data in parts],
            "artifacts": libraries,
            "suppressed": suppressed,
            "import_paths": list(candidate.allow_imports),
            "threads": self.host.cores.threads,
            "compile": COMPILE_MODES.get(name),
        }
        return fields, b"".join(data for _, data in parts)

    def record_conditions(self, when: str) -> Conditions | None:
        """Keep the state of the GPU for the report; `None`: there is no GPU, or no word of it."""
        if not self.host.device.is_gpu:
            return None
        found = conditions(self.host.device.uuid)
        if found is not None:
            noted = {**dataclasses.asdict(found), "reasons": list(found.reasons)}
            self.conditions[when] = noted
        return found

    def record_output(self, name: str) -> None:
        """Keep what the candidate printed."""
        if name == "candidate":
            self.printed = self.runners[name].child.printed.text()

    def record_overhead(self, wall_s: float) -> None:
        """Record the wall time that was spent outside the calls of candidate and baselines."""
        own = max(wall_s - self.call_s - self.waited_s, 0.0)
        detail = f"{own:.4f} s outside {self.call_s:.4f} s of calls"
        self.stages.append(StageRecord(name="total", wall_s=wall_s, detail=detail))

    def choices(self, *names: object) -> Any:  # noqa: ANN401 - random.Random
        """Return a generator for our own secret choices."""
        return generator(self.root, *names)

    def release_to_cache(self, name: str) -> None:
        """Set a side aside, under a name of its own, for the next time that it is needed."""
        runner = self.runners.pop(name)
        self._rename(runner, f"{name}, process {runner.child.pid}")
        self.cached.add(name, runner)

    def acquire_from_cache(self, name: str) -> bool:
        """Make a side that was set aside the side `name`; tell whether there was one."""
        runner = self.cached.take(name)
        if runner is None:
            return False
        self._rename(runner, name)
        runner.serve(self.watch, self.deadline)
        self.runners[name] = runner
        return True

    def _rename(self, runner: Runner, name: str) -> None:
        self.ask("rename", {"runner": runner.name, "to": name})
        runner.name = name

    def stop_runner(self, name: str) -> None:
        """End a side and let the judge forget its arenas."""
        runner = self.runners.pop(name, None)
        if runner is not None:
            runner.close()
            if self.judge is not None and not self.judge.closed:
                self.ask("forget", {"runners": [name]})
