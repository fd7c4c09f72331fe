"""The limits of a build: importing a candidate has its own, and a compiler has another.

A build may last minutes, because compilers do. A candidate's own code has the limits of a runner:
`load_s` until its file is imported, and `call_timeout_s` for the calls after that.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tilewright.evaluator.processes.forkserver_client import Child
from tilewright.evaluator.processes.host import JUDGE_MEMORY
from tilewright.evaluator.runners.messages import EvaluationEnded
from tilewright.records import Limits
from tilewright.records.codes import FailureReason, Stage
from tilewright.wire.frames import Frame


class BuildWatch:
    """Watches a builder: client, memory, and the time of the candidate's own code.

    Time counts as the candidate's own while no other process runs in the sandbox and the builder
    reports no compiler inside its own process. Both can be forged. The deadline of the whole build
    holds then. Lifetime: one build.
    """

    def __init__(self, child: Child, limits: Limits, watch: Callable[[], None]) -> None:
        self._child, self._limits, self._watch = child, limits, watch
        self._own_s, self._looked_at = 0.0, time.monotonic()
        self._imported = self._compiling = False

    def __call__(self) -> None:
        """Raise if the client has gone or a limit is exceeded."""
        self._watch()
        now = time.monotonic()
        self._child.tree.refresh()
        alone = len(self._child.tree.pids) <= 1
        if alone and not self._compiling:
            self._own_s += now - self._looked_at
        self._looked_at = now
        self._check_time()
        allowed = self._limits.memory_bytes * JUDGE_MEMORY
        if used := self._child.memory.excess(allowed):
            message = f"the build held {used >> 20} MiB, at most {allowed >> 20} MiB are allowed"
            raise EvaluationEnded.failed(Stage.BUILD, FailureReason.OUT_OF_MEMORY, message)

    def _check_time(self) -> None:
        limits = self._limits
        if self._imported and self._own_s > limits.call_timeout_s:
            message = f"its calls took longer than {limits.call_timeout_s:g} s without a compiler"
            raise EvaluationEnded.failed(Stage.PRECOMPILE, FailureReason.TIMEOUT, message)
        if not self._imported and self._own_s > limits.load_s:
            message = f"its import took longer than {limits.load_s:g} s without a compiler"
            raise EvaluationEnded.failed(Stage.LOAD, FailureReason.TIMEOUT, message)

    def note(self, frame: Frame) -> bool:
        """Take a builder's report of its progress; `False`: the frame is none."""
        if frame.kind not in PROGRESS:
            return False
        self()
        if frame.kind == "imported":
            self._imported, self._own_s = True, 0.0
        self._compiling = frame.kind == "compiling"
        return True


PROGRESS = ("entering", "imported", "compiling", "compiled")
"""Kinds of frames by which a builder reports what it does; the candidate can send them too."""
