"""Several GPUs of one machine: the stream of `throughput` over 1, 2 and 4, and its neighbours.

Each arm runs the stream, as often as it takes, for `ARM_S` after its warm-up, so that all of it
ends within nine minutes at any rate. With `cpu` the same code runs on the processor as a rehearsal:
there is one device, so the rate does not grow.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.bars import Bar
from benchmarks.gpu.requests import OVERRIDES
from benchmarks.gpu.throughput import WORKERS, requests
from tilewright.cli.self_comparison import samples_of, self_request
from tilewright.config import load
from tilewright.evaluator.devices.devices import gpu_names
from tilewright.executors.base import Executor
from tilewright.executors.local import LocalExecutor, share_cores
from tilewright.executors.ray_executor import RayExecutor
from tilewright.problems.requests import build_request
from tilewright.records import EvalRequest
from tilewright.scoring import bootstrap

COUNTS = (1, 2, 4)
WANTED = {2: 1.9, 4: 3.6}
MAX_NOISE = 2.0
"""Largest noise of timing while other GPUs work, as a multiple of an idle machine's."""
SHARE = float(os.environ.get("SHARE", "1"))
"""Share of the usual time that this run may take: each part becomes shorter by it."""
ARM_S, WARM_S = SHARE * 55.0, SHARE * 40.0
AA_S = SHARE * 45.0
TOTAL_S = 510.0
"""After which no further arm is begun."""
AA_PROBLEMS = ("add_relu", "softmax", "matmul_bias_gelu")
CPU_SOURCE = "import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, -1)  # {} {}\n"
QUICK = ("eval.timing.max_s=0.3", "eval.timing.min_blocks=6", "eval.timing.max_blocks=8")


@dataclass(frozen=True)
class Plan:
    """What differs between a GPU and the processor."""

    devices: tuple[str, ...]
    stream: Callable[[], Iterator[EvalRequest]]
    overrides: tuple[str, ...]
    arm_s: float
    warm_s: float
    aa_s: float
    counts: tuple[int, ...]
    queued: int
    """Under way and waiting, for each worker."""

    @property
    def kind(self) -> str:
        """Return `cpu` or `cuda`."""
        return self.devices[0].partition(":")[0]


def _plan(*, cpu: bool) -> Plan:
    if cpu:
        overrides = ("eval.device=cpu", *QUICK)
        return Plan(("cpu", "cpu"), _on_cpu, overrides, 5.0, 10.0, 4.0, (1, 2), 1)
    devices = tuple(gpu_names())
    counts = tuple(count for count in COUNTS if count <= len(devices))
    return Plan(devices, _on_gpu, tuple(OVERRIDES), ARM_S, WARM_S, AA_S, counts, 4)


def _on_gpu() -> Iterator[EvalRequest]:
    """Yield the 60 candidates again and again, each time as other sources."""
    for turn in itertools.count():
        yield from (item for _, item in requests(f"scale {time.monotonic_ns()} {turn}"))


def _on_cpu() -> Iterator[EvalRequest]:
    settings = load(overrides=["eval.device=cpu", "eval.timing.enabled=false"], environ={})
    mark = time.monotonic_ns()
    for number in itertools.count():
        yield build_request(CPU_SOURCE.format(mark, number), "softmax", settings)


class Load:
    """Keeps an executor busy with the stream, and counts. Lifetime: one arm."""

    def __init__(
        self, executor: Executor, stream: Iterator[EvalRequest], max_concurrency: int
    ) -> None:
        self._executor, self._stream = executor, stream
        self._lock, self._over = threading.Lock(), threading.Event()
        self.ended: list[float] = []
        self.stages: dict[str, list[float]] = {}
        """Seconds of each stage of the evaluations that are counted."""
        self.medians: dict[str, float] = {}
        self.wrong: list[str] = []
        self._pool = ThreadPoolExecutor(max_concurrency)
        self._futures = [self._pool.submit(self._work) for _ in range(max_concurrency)]

    def _work(self) -> None:
        while not self._over.is_set():
            with self._lock:
                request = next(self._stream)
            report = self._executor.evaluate(request, lambda _, __: None)
            with self._lock:
                self.ended.append(time.monotonic())
                for stage in report.stages:
                    self.stages.setdefault(stage.name, []).append(stage.wall_s)
                if report.verdict != "correct":
                    self.wrong.append(f"{report.verdict}: {str(report.outcome)[:200]}")

    def rate(self, warm: int, warm_s: float, seconds: float) -> tuple[float, int]:
        """Return evaluations a second once `warm` have ended, and over how many."""
        limit = time.monotonic() + warm_s
        while len(self.ended) < warm and time.monotonic() < limit:
            time.sleep(0.05)
        start = time.monotonic()
        with self._lock:
            self.stages.clear()
        time.sleep(seconds)
        stop = time.monotonic()
        with self._lock:
            found = sum(start < when <= stop for when in self.ended)
            self.medians = {name: bootstrap.median(made) for name, made in self.stages.items()}
        return found / (stop - start), found

    def stop(self) -> list[str]:
        """Let what is under way finish; return what was not correct."""
        self._over.set()
        for future in self._futures:
            future.result()
        self._pool.shutdown()
        return self.wrong


@dataclass(frozen=True)
class Arm:
    """One rate: through what, on how many devices."""

    through: str
    devices: int
    rate: float
    evaluations: int
    wrong: tuple[str, ...]
    stages: dict[str, float]
    """Median seconds of each stage."""


def _arm(plan: Plan, through: str, count: int, home: Path) -> Arm:
    devices = plan.devices[:count]
    if through == "ray":
        executor: Executor = RayExecutor(None, workers=WORKERS, device=plan.kind, home=home)
        assert isinstance(executor, RayExecutor)
        _until(executor, 1 if plan.kind == "cpu" else count)
    else:
        executor = LocalExecutor(home, WORKERS * count, devices)
    try:
        load_ = Load(executor, plan.stream(), plan.queued * WORKERS * count)
        rate, found = load_.rate(6 * WORKERS * count, plan.warm_s, plan.arm_s)
        wrong, stages = load_.stop(), load_.medians
    finally:
        executor.close()
    print(f"{through} on {count}: {rate:.2f} a second, over {found}", flush=True)
    print("   " + ", ".join(f"{name} {s:.3f}" for name, s in stages.items()), flush=True)
    return Arm(through, count, rate, found, tuple(wrong), stages)


def _until(executor: RayExecutor, count: int) -> None:
    limit = time.monotonic() + 60.0
    while len(executor.members()) < count:
        if time.monotonic() > limit:
            raise RuntimeError(f"{len(executor.members())} devices leased; {executor.refused}")
        time.sleep(0.1)


def _noise(executor: Executor, plan: Plan, seconds: float) -> list[float]:
    """Return what a reference against itself is off by: absolute log ratios, one a pair."""
    settings = load(overrides=[*plan.overrides], environ={})
    limit, found = time.monotonic() + seconds, list[float]()
    for name in itertools.cycle(AA_PROBLEMS):
        if time.monotonic() > limit:
            return found
        report = executor.evaluate(self_request(name, settings), lambda _, __: None)
        found += [abs(sample.log_ratio) for sample in samples_of(report)]
    return found


def _neighbours(plan: Plan, home: Path) -> tuple[list[float], list[float]]:
    """Return A/A of the first device while the others idle, and while they judge the stream."""
    parts = share_cores(plan.devices)
    with LocalExecutor(home, 1, plan.devices[:1], cores=parts[0]) as first:
        _noise(first, plan, 0.1)
        idle = _noise(first, plan, plan.aa_s)
        others = [
            LocalExecutor(home, WORKERS, (name,), cores=part)
            for name, part in zip(plan.devices[1:], parts[1:], strict=True)
        ]
        loads = [Load(other, plan.stream(), plan.queued * WORKERS) for other in others]
        for item in loads:
            item.rate(2, plan.warm_s, 0.0)
        busy = _noise(first, plan, plan.aa_s)
        for item, other in zip(loads, others, strict=True):
            item.stop()
            other.close()
    return idle, busy


def run(out: Path, *, cpu: bool = False) -> list[Bar]:
    """Measure each arm, then the neighbours."""
    plan, start = _plan(cpu=cpu), time.monotonic()
    arms: list[Arm] = []
    with tempfile.TemporaryDirectory(prefix="scale") as place:
        home = Path(place) / "home"
        arms += [_arm(plan, "embedded", count, home) for count in plan.counts]
        idle, busy = _neighbours(plan, home) if len(plan.devices) > 1 else ([], [])
        quiet = _quiet(idle, busy, cpu=cpu)
        _keep(out, [arm.__dict__ for arm in arms], idle, busy)
        print(*(bar.row() for bar in quiet), sep="\n", flush=True)
        longest = plan.arm_s + plan.warm_s
        if importlib.util.find_spec("ray") is None:
            print("ray is not installed: not measured through it", flush=True)
        elif time.monotonic() - start + longest < TOTAL_S:
            arms.append(_arm(plan, "ray", plan.counts[-1], home))
        else:
            print("no time is left for ray", flush=True)
    _keep(out, [arm.__dict__ for arm in arms], idle, busy)
    return [*_rates(arms, cpu=cpu), *quiet]


def _keep(
    out: Path, arms: list[dict[str, Any]], idle: Sequence[float], busy: Sequence[float]
) -> None:
    """Write what there is so far: a run may be cut off."""
    text = json.dumps({"arms": arms, "idle": idle, "busy": busy})
    (out / "gpu_scale.json").write_text(text, encoding="utf-8")


def _rates(arms: Sequence[Arm], *, cpu: bool) -> list[Bar]:
    one = arms[0].rate
    bars = []
    for arm in arms:
        ratio = arm.rate / one if one else 0.0
        least = None if cpu else WANTED.get(arm.devices)
        wanted = f">= {least} x one" if least else "stated"
        seen = f"{arm.rate:.2f} ({ratio:.2f} x), over {arm.evaluations}"
        held = not arm.wrong and (least is None or ratio >= least)
        name = f"scale: evaluations a second, {arm.through}, {arm.devices} devices"
        bars.append(Bar(name, wanted, seen, held, {"wrong": list(arm.wrong)[:20]}))
    return bars


def _quiet(idle: Sequence[float], busy: Sequence[float], *, cpu: bool) -> list[Bar]:
    if not idle or not busy:
        return []
    found = []
    for name, of in (("median", 0.5), ("95th percentile", 0.95)):
        before, after = bootstrap.quantile(idle, of), bootstrap.quantile(busy, of)
        ratio = after / before if before else float("inf")
        seen = f"{100 * before:.2f} % to {100 * after:.2f} % ({ratio:.1f} x)"
        bar = f"scale: A/A with busy neighbours, {name}"
        found.append(Bar(bar, f"<= {MAX_NOISE:g} x idle", seen, cpu or ratio <= MAX_NOISE))
    return found
