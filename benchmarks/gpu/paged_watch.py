"""Counts of passes and CUDA graphs while continuous batching samples, and a time limit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import torch
from transformers.generation.continuous_batching import ContinuousBatchingManager
from transformers.generation.continuous_batching.model_runner import ModelRunner

EVERY = 1024
"""Passes between two lines of progress."""


class Watch:
    """Times the capture of CUDA graphs, and tells the progress. Lifetime: one `with` block."""

    def __init__(self, say: Callable[[str], None], limit_s: float = math.inf) -> None:
        self.captures, self.passes = 0, 0
        self.capture_s = 0.0
        self._say, self._limit_s = say, limit_s
        self._began = time.monotonic()
        self._capture: Any = ModelRunner._capture_graph
        self._step: Any = ContinuousBatchingManager._generation_step

    def __enter__(self) -> Watch:
        watch = self

        def capture(runner: Any, forward: Any, *given: Any) -> None:  # noqa: ANN401
            watch._timed(runner, forward, given)

        def step(manager: Any) -> None:  # noqa: ANN401
            watch._step(manager)
            watch._count()

        ModelRunner._capture_graph = capture
        ContinuousBatchingManager._generation_step = step
        return self

    def __exit__(self, *_: object) -> None:
        ModelRunner._capture_graph = self._capture
        ContinuousBatchingManager._generation_step = self._step

    def _timed(self, runner: Any, forward: Any, given: tuple[Any, ...]) -> None:  # noqa: ANN401
        """Time a capture without the pass before it, whose result is used."""
        useful = 0.0

        def once(*inner: Any) -> None:  # noqa: ANN401
            nonlocal useful
            start = time.monotonic()
            forward(*inner)
            if not torch.cuda.is_current_stream_capturing():
                torch.cuda.synchronize()
                useful += time.monotonic() - start

        torch.cuda.synchronize()
        start = time.monotonic()
        self._capture(runner, once, *given)
        torch.cuda.synchronize()
        self.capture_s += time.monotonic() - start - useful
        self.captures += 1

    def _count(self) -> None:
        self.passes += 1
        seconds = time.monotonic() - self._began
        if self.passes % EVERY == 0:
            self._say(f"{self.passes} passes in {seconds:.1f} s")
        if seconds > self._limit_s:
            raise TimeoutError(f"stopped after {self.passes} passes and {seconds:.0f} s")
