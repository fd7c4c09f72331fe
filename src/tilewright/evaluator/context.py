"""The subject of an evaluation, and the values that never change while it runs."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.seeds import derive, generator
from tilewright.languages.stream_use import names_streams
from tilewright.records import EvalRequest
from tilewright.records.request import COMPILE_MODES
from tilewright.wire.builder_calls import BuilderCall
from tilewright.wire.frames import Fields

Emit = Callable[[str, Fields], None]
"""Reports an event of the evaluation's progress, with its fields."""


class RequestedBuild(NamedTuple):
    """An extension that an implementation asked for."""

    implementation: str
    call: BuilderCall


@dataclass(frozen=True)
class EvaluationContext:
    """One request on one device, and its secret root seed.

    Attributes:
        host: the device's processes, cores and lease.
        request: the candidate, its problem, and the rules.
        root: 32 hexadecimal digits; every other seed follows from them.
        emit: reports progress.
        watch: is called while the supervisor waits; it raises if the client has gone.
        requested: the builds that implementations of this evaluation have asked for.
        alone_reason: why nothing else of this user may hold memory of the device meanwhile;
            `None`: others may.
    """

    host: DeviceHost
    request: EvalRequest
    root: str
    emit: Emit
    watch: Callable[[], None]
    requested: tuple[RequestedBuild, ...] = ()
    alone_reason: str | None = None

    def seed(self, *names: object) -> int:
        """Return the seed of `names` under this evaluation's secret root."""
        return derive(self.root, *names, *self._digests)

    def choices(self, *names: object) -> random.Random:
        """Return a generator for the supervisor's own secret choices."""
        return generator(self.root, *names, *self._digests)

    @cached_property
    def _digests(self) -> tuple[str, ...]:
        # A process that asked for a build had seen inputs, which its sources may hold: they are
        # other ones as soon as the build can be loaded.
        return tuple(sorted(build.call.digest() for build in self.requested))

    @cached_property
    def several_streams(self) -> bool:
        """Whether an implementation may use several CUDA streams; then all get queues for them."""
        problem, baselines = self.request.problem, self.request.baselines
        loaded = [self.request.candidate, *(one.candidate for one in baselines if one.candidate)]
        return (
            # torch may replay what it compiles as a CUDA graph.
            any(one.name in COMPILE_MODES for one in baselines)
            or any(one.allow_imports for one in loaded)
            or names_streams([problem.source, *(file for one in loaded for file in one.files)])
        )
