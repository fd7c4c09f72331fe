"""Where the time of an evaluation goes: the requests that the supervisor waits for, by kind.

`python -m benchmarks.gpu.request_cost` evaluates candidates of the bar `stream` in one process, the
second one of each problem under a clock. It prints milliseconds per evaluation, by stage and kind
of request. No bar holds it to a figure.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.gpu import throughput
from benchmarks.gpu.requests import DEVICE
from tilewright.evaluator.devices.devices import find_device
from tilewright.evaluator.judge_client.client import JudgeClient, PendingAnswer
from tilewright.evaluator.pipeline.run import evaluate
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.runners.gpu_runner import GpuRunner
from tilewright.evaluator.runners.pool import RunnerPool

EVALUATIONS = 12
"""Candidates under the clock: two of each problem."""
WAITS = (
    (PendingAnswer, "get"),
    (GpuRunner, "is_queued"),
    (GpuRunner, "result"),
    (GpuRunner, "map"),
    (GpuRunner, "load"),
    (RunnerPool, "start"),
)
"""Methods that wait for another process. `start` contains `map` and `load`."""


class Clock:
    """Adds up seconds and calls by name. Lifetime: the benchmark."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: defaultdict[str, int] = defaultdict(int)

    def timed(self, kind: type, method: str) -> Callable[..., Any]:
        """Return a method that notes how long the one of its class takes."""
        inner: Callable[..., Any] = getattr(kind, method)

        def call(this: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401
            begun = time.perf_counter()
            try:
                return inner(this, *args, **options)
            finally:
                name = f"{kind.__name__}.{method}"
                if kind is PendingAnswer:
                    name = f"{JudgeClient.__name__} {type(this.request).__name__}"
                self.seconds[name] += time.perf_counter() - begun
                self.calls[name] += 1

        return call


def main() -> int:
    """Print the table."""
    clock, cores, stages = Clock(), os.sched_getaffinity(0), defaultdict[str, float](float)
    with tempfile.TemporaryDirectory(prefix="request-cost-") as folder:
        host = DeviceHost(Path(folder), find_device(DEVICE))
        try:
            for _, asked in throughput.requests("warm")[: len(throughput.ROWS)]:
                evaluate(host, asked, lambda *_: None, lambda: None)
            patches = [patch.object(kind, name, clock.timed(kind, name)) for kind, name in WAITS]
            for each in patches:
                each.start()
            for _, asked in throughput.requests("timed")[:EVALUATIONS]:
                report = evaluate(host, asked, lambda *_: None, lambda: None)
                for stage in report.stages:
                    stages[stage.name] += stage.wall_s
            for each in patches:
                each.stop()
        finally:
            host.close()
            os.sched_setaffinity(0, cores)
    print("milliseconds of one evaluation, by stage")
    for name, seconds in stages.items():
        print(f"{name:24} {seconds / EVALUATIONS * 1e3:9.1f}")
    print("by request: milliseconds of one evaluation, calls, milliseconds of one call")
    for name, seconds in sorted(clock.seconds.items(), key=lambda item: -item[1]):
        count = clock.calls[name]
        share = seconds / EVALUATIONS * 1e3
        print(f"{name:36} {share:9.1f} {count / EVALUATIONS:7.1f} {seconds / count * 1e3:9.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
