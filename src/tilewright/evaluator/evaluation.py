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

from tilewright.contestant.frames import DeadlineExceeded, Frame
from tilewright.errors import InfrastructureError, ProblemError
from tilewright.evaluator.calibration import DEFAULT, Calibration
from tilewright.evaluator.confinement import DOOR
from tilewright.evaluator.device_clock import calibrate
from tilewright.evaluator.device_side import DeviceSide
from tilewright.evaluator.devices import FEW_QUEUES
from tilewright.evaluator.drawn import Answer, Drawn
from tilewright.evaluator.host import Host
from tilewright.evaluator.nvml import Conditions, conditions
from tilewright.evaluator.pool import pool_library
from tilewright.evaluator.processes import Child, answer, tell
from tilewright.evaluator.seeds import derive, generator
from tilewright.evaluator.sides import Ended, Side
from tilewright.evaluator.testimony import Result
from tilewright.evaluator.warm import Parked
from tilewright.languages.streams import names_streams
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

__all__ = ["SLOTS", "Evaluation"]

SLOTS = 3
LEAST_PATIENCE_S = 30.0
"""With the judge, however little time a candidate has."""
"""Addresses at which inputs arrive: a ring, and the same one again."""
COMPILE_MODES = {"compile": "default", "max-autotune": "max-autotune"}
"""Baselines that torch compiles, and how."""
Emit = Callable[[str, dict[str, Any]], None]


@dataclass
class Evaluation:
    """One request under way. `emit` reports progress; everything else is filled stage by stage."""

    host: Host
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
    sides: dict[str, Side] = field(default_factory=dict)
    parked: Parked = field(default_factory=Parked)
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
    _draws: int = 0

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
        timeout_s = min(timeout_s, max(self.request.limits.total_s, LEAST_PATIENCE_S))
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

    def make_room(self, side: Side, inputs: int) -> None:
        """Give a side and the judge a shared input arena of at least this size."""
        if isinstance(side, DeviceSide):
            self._share(side, inputs)
            return
        fds = side.make_room(inputs)
        if fds is None:
            return
        fields = {"side": side.name, "inputs": side.inputs_bytes, "mirror": side.base}
        try:
            self.ask("map", fields, fds=fds)
        finally:
            for fd in fds:
                os.close(fd)

    def _share(self, side: DeviceSide, inputs: int) -> None:
        """Have the judge allocate on the device, and the side map it."""
        if inputs <= side.inputs_bytes:
            return
        first = not side.inputs_bytes
        fields = {"side": side.name, "inputs": inputs, "reserve": self.reserve_bytes}
        shared = self.ask("share", {**fields, "pool": self.pool_bytes})
        library = str(pool_library(self.host.home))
        base = side.map(shared, library, tf32=self.request.allows_tf32)
        if first:
            self.ask("mapped", {"side": side.name, "base": base})
            side.clock_excess_s = calibrate(self, side)

    def draw(self, case: Case, contents: str, repeat: int = 0, *, timed: bool = False) -> Drawn:
        """Have the judge draw inputs; nothing of them reaches a side yet.

        With `timed` they are for timed calls alone: what those are held against is made each time.
        """
        self._draws += 1
        name = f"{self._draws}"
        seed = self.seed("inputs", case.name, contents, repeat)
        forward_seed = self.seed("forward", repeat) & 0x7FFFFFFF
        fields = {
            "draw": name,
            "params": dict(case.params),
            "contents": contents,
            "seed": seed,
            "forward_seed": forward_seed,
            "timed": timed,
        }
        answer = self.ask("draw", fields)
        answer.pop("structure")
        return Drawn(
            name=name,
            case=case.name,
            contents=contents,
            seed=seed,
            forward_seed=forward_seed,
            **answer,
        )

    def fields_of(self, drawn: Drawn, slot: int) -> dict[str, Any]:
        """Return the call fields of a draw published at `slot`."""
        return {
            "base": slot * drawn.slot_bytes,
            "size": drawn.size,
            "args": drawn.tree,
            "grads": drawn.grads,
            "grad_outputs": drawn.grad_outputs,
            "forward_seed": drawn.forward_seed,
            "expected": drawn.outputs,
        }

    def publish(self, side: Side, drawn: Drawn, slot: int) -> None:
        """Write a draw into a side's arena at `slot`."""
        fields = {"draw": drawn.name, "side": side.name, "base": slot * drawn.slot_bytes}
        self.ask("publish", fields)

    def check(self, side: Side, drawn: Drawn, slot: int, result: Result) -> Answer:
        """Have the judge compare what a side wrote, and what it overwrote."""
        answer = self.ask(
            "check",
            {
                "draw": drawn.name,
                "side": side.name,
                "base": slot * drawn.slot_bytes,
                "outputs": [item.described() for item in result.outputs],
            },
        )
        return Answer(answer["wrong"], answer["message"], answer["error"], tuple(answer["mutated"]))

    def call(self, side: Side, drawn: Drawn, slot: int, *, census: bool = False) -> Result:
        """Publish a draw and have a side compute it."""
        self.make_room(side, SLOTS * drawn.slot_bytes)
        self.publish(side, drawn, slot)
        start = time.monotonic()
        result = side.call({**self.fields_of(drawn, slot), "census": census})
        self.call_s += time.monotonic() - start
        return result

    def forget(self, drawn: Drawn) -> None:
        """Let the judge drop a draw."""
        self.ask("forget", {"draws": [drawn.name]})

    def open_side(self, name: str, candidate: Candidate, *, knockout: bool = False) -> Side:
        """Start a contestant, check its layers, and load a candidate into it.

        Raises:
            Ended: the candidate failed to load, or a required layer is not active.
        """
        limits = self.request.limits
        streams = self.several_streams
        child = self.host.spawn("contestant", limits, candidate.allow_imports, streams=streams)
        if name in COMPILE_MODES:
            # Its first call compiles, which is a build.
            limits = limits.model_copy(update={"call_s": limits.build_s})
        kind = DeviceSide if self.host.device.is_gpu else Side
        side = kind(name, child, limits, self.watch, self.deadline, self.host.cores.threads)
        self.sides[name] = side
        child.wait_ready()
        if self.host.device.is_gpu:
            child.begin()
            self.conditions["contestants"] = {"queues": None if streams else FEW_QUEUES}
        self.note_protections(child)
        self.make_room(side, max(self.init_bytes, 4096))
        self.ask("publish_init", {"side": name})
        fields, body = self._load_fields(name, candidate, knockout=knockout)
        frame = side.load(fields, body)
        side.entries = side.weight_entries(frame)
        return side

    def note_protections(self, child: Child) -> None:
        """Record which layers hold; end the evaluation where a demanded one does not."""
        self.protections = tuple(
            Protection(name=layer, active=not reason, detail=reason)
            for layer, reason in child.applied.items()
            # By a device's clock nothing is gained from work in other processes.
            if layer != DOOR or not self.host.device.is_gpu
        )
        active = {item.name for item in self.protections if item.active}
        missing = [layer for layer in self.request.require_layers if layer not in active]
        if missing:
            message = "; ".join(f"{layer}: {child.applied.get(layer)}" for layer in missing)
            raise Ended(Unjudged(reason="required layer not active", message=message))

    def _load_fields(
        self, name: str, candidate: Candidate, *, knockout: bool
    ) -> tuple[dict[str, Any], bytes]:
        built = self.artifacts.get(name.removesuffix("-knockout"), {})
        parts = [(item.path, item.text.encode()) for item in candidate.files]
        libraries = {key: f"lib_{index}.so" for index, key in enumerate(built)}
        parts += [(libraries[key], data) for key, data in built.items()]
        fields = {
            "loader": self.loaders.get(name.removesuffix("-knockout"), "python"),
            "entry": candidate.entry,
            "other_entries": [],
            "keywords": list(self.request.problem.keywords),
            "mode": self.request.problem.mode,
            "init_seed": self.seed("init") & 0x7FFFFFFF,
            "init": self.init_tree,
            "files": [{"path": path, "size": len(data)} for path, data in parts],
            "artifacts": libraries,
            "knockout": knockout,
            "import_paths": list(candidate.allow_imports),
            "threads": self.host.cores.threads,
            "compile": COMPILE_MODES.get(name),
        }
        return fields, b"".join(data for _, data in parts)

    def note_conditions(self, when: str) -> Conditions | None:
        """Keep the state of the GPU for the report; `None`: there is no GPU, or no word of it."""
        if not self.host.device.is_gpu:
            return None
        found = conditions(self.host.device.uuid)
        if found is not None:
            noted = {**dataclasses.asdict(found), "reasons": list(found.reasons)}
            self.conditions[when] = noted
        return found

    def note_printed(self, name: str) -> None:
        """Keep what the candidate printed."""
        if name == "candidate":
            self.printed = self.sides[name].child.printed.text()

    def note_cost(self, wall_s: float) -> None:
        """Record the wall time that was spent outside the calls of candidate and baselines."""
        own = max(wall_s - self.call_s - self.waited_s, 0.0)
        detail = f"{own:.4f} s outside {self.call_s:.4f} s of calls"
        self.stages.append(StageRecord(name="total", wall_s=wall_s, detail=detail))

    def choices(self, *names: object) -> Any:  # noqa: ANN401 - random.Random
        """Return a generator for our own secret choices."""
        return generator(self.root, *names)

    def park(self, name: str) -> None:
        """Set a side aside, under a name of its own, for the next time that it is needed."""
        side = self.sides.pop(name)
        self._rename(side, f"{name}, process {side.child.pid}")
        self.parked.add(name, side)

    def take_parked(self, name: str) -> bool:
        """Make a side that was set aside the side `name`; tell whether there was one."""
        side = self.parked.take(name)
        if side is None:
            return False
        self._rename(side, name)
        side.serve(self.watch, self.deadline)
        self.sides[name] = side
        return True

    def _rename(self, side: Side, name: str) -> None:
        self.ask("rename", {"side": side.name, "to": name})
        side.name = name

    def close_side(self, name: str) -> None:
        """End a side and let the judge forget its arenas."""
        side = self.sides.pop(name, None)
        if side is not None:
            side.close()
            if self.judge is not None and not self.judge.closed:
                self.ask("forget", {"sides": [name]})
