"""Triton candidates in the interpreter, loaded by the runner in a thread."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.unit.runner.test_main import value
from tilewright.evaluator.runners.messages import ErrorReport, Result, read
from tilewright.runner.launch_counter import Launches

pytest.importorskip("triton.runtime.interpreter")
pytestmark = [
    pytest.mark.usefixtures("runner_folder"),
    pytest.mark.skipif(
        os.environ.get("TRITON_INTERPRET") != "1", reason="triton was imported for a device"
    ),
]

SCALE = """
import torch
import triton
import triton.language as tl

@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

def work(x):
    y = torch.empty_like(x)
    scale[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), BLOCK=32)
    return y
"""


def test_launches_are_made_and_counted(runner):
    assert runner.load({"candidate.py": SCALE}).kind == "loaded"
    x = torch.arange(100.0)
    frame = runner.call(x)

    assert torch.equal(value(runner, frame, x), x * 2)
    assert read(frame, Result).launches == 1


def test_suppressed_launches_do_nothing_and_are_counted(runner):
    source = SCALE.replace("empty_like", "zeros_like")
    runner.load({"candidate.py": source}, suppressed=True)
    x = torch.arange(100.0)
    frame = runner.call(x)

    assert not bool(value(runner, frame, x).any())
    assert read(frame, Result).launches == 1


def test_a_launch_that_raises_does_not_count(runner):
    source = SCALE.replace(
        "    scale[(triton",
        "    try:\n        scale[(1,)](x, y, no_such, BLOCK=32)\n"
        "    except Exception:\n        pass\n    return x * 2\n    scale[(triton",
    ).replace("no_such", "'text', 3")
    runner.load({"candidate.py": source})

    assert read(runner.call(torch.ones(8)), Result).launches == 0


def test_autotune_works_without_a_driver(runner):
    source = SCALE.replace(
        "@triton.jit",
        "@triton.autotune(configs=[triton.Config({'BLOCK': 16}), triton.Config({'BLOCK': 64})],\n"
        "                 key=['n'])\n@triton.jit",
    ).replace(
        "scale[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), BLOCK=32)",
        "scale[lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)](x, y, x.numel())",
    )
    runner.load({"candidate.py": source})
    x = torch.arange(100.0)
    first = runner.call(x)
    second = runner.call(x)

    assert torch.equal(value(runner, second, x), x * 2)
    assert read(first, Result).launches > 2
    assert read(second, Result).launches == 1


def test_an_exception_in_a_kernel_fails_the_candidate(runner):
    source = SCALE.replace("tl.load(x + at, mask=at < n)", "tl.load(x + at, mask=at < nothing)")
    runner.load({"candidate.py": source})

    assert runner.call(torch.ones(8)).kind == "error"
    assert read(runner.call(torch.ones(8)), ErrorReport).during == "call"


def test_the_driver_stub_answers_device_queries():
    from triton.runtime import driver

    Launches(suppress=False).hook_triton()
    active = driver.active
    benchmark = active.get_benchmarker()

    assert active.get_current_device() == 0
    assert active.get_active_torch_device() == torch.device("cpu")
    assert active.get_device_interface() is torch.cpu
    assert active.get_current_target().backend == "cuda"
    assert benchmark(lambda: None) >= 0
    assert len(benchmark(lambda: None, quantiles=(0.5, 0.2, 0.8))) == 3


class Compiled:
    """The launching part of Triton's compiled kernels."""

    def __init__(self, module: str = "candidate") -> None:
        self.src = SimpleNamespace(fn=SimpleNamespace(__module__=module))
        self.launched: list[object] = []
        self.launcher = self.launched.append

    @property
    def run(self) -> Callable[..., None]:
        return self.launcher


def hooked(*, suppress: bool = False) -> tuple[type[Compiled], Launches]:
    kind, launches = type("Hooked", (Compiled,), {"run": Compiled.run}), Launches(suppress=suppress)
    launches.hook_compiled(kind)
    return kind, launches


def test_the_attribute_that_every_launch_on_a_device_reads_is_hooked(monkeypatch):
    from triton.compiler.compiler import CompiledKernel

    monkeypatch.setenv("TRITON_INTERPRET", "0")
    monkeypatch.setattr(CompiledKernel, "run", CompiledKernel.run)
    before = CompiledKernel.run
    Launches(suppress=False).hook_triton()

    assert CompiledKernel.run is not before


def test_a_kept_compiled_kernel_and_a_kept_launcher_are_counted():
    kind, launches = hooked()
    kernel = kind()
    kept = kernel.run
    kept(1)
    kernel.run(2)

    assert (kernel.launched, launches.count) == ([1, 2], 2)
    assert kernel.run is kept


def test_a_kept_compiled_kernel_is_suppressed():
    kind, launches = hooked(suppress=True)
    kernel = kind()
    kernel.run(1)

    assert (kernel.launched, launches.count) == ([], 1)


def test_a_kernel_that_torch_wrote_is_not_the_candidates_own():
    kind, launches = hooked(suppress=True)
    kernel = kind("torch._inductor.runtime.compile_tasks.c1")
    kernel.run(1)

    assert (kernel.launched, launches.count) == ([1], 0)


class Graph:
    """The methods of a CUDA graph by which it is captured and replayed."""

    replayed = 0

    def capture_begin(self, pool: object = None) -> None:
        self.pool = pool

    def capture_end(self) -> None:
        self.captured = True

    def replay(self) -> None:
        self.replayed += 1


@pytest.mark.parametrize("own", [0, 3])
def test_a_replay_counts_the_own_launches_that_were_captured(own):
    launches = Launches(suppress=False)
    kind: Any = type("HookedGraph", (Graph,), {})
    launches.hook_graphs(kind)
    launch, graph = launches.wrap(lambda: None), kind()
    graph.capture_begin(pool=7)
    for _ in range(own):
        launch()
    graph.capture_end()
    before = launches.count
    graph.replay()
    graph.replay()

    assert (graph.pool, graph.captured, graph.replayed) == (7, True, 2)
    assert launches.count - before == 2 * own


def test_a_replay_of_own_launches_lies_between_events():
    launches, marks = Launches(suppress=False), list[int]()
    kind: Any = type("HookedGraph", (Graph,), {})
    launches.hook_graphs(kind)
    graph = kind()
    graph.capture_begin()
    launches.wrap(lambda: None)()
    graph.capture_end()

    def mark() -> int:
        marks.append(graph.replayed)
        return len(marks)

    with launches.spanned(mark):
        graph.replay()
        graph.capture_begin()
        launches.wrap(lambda: None)()
        graph.capture_end()

    assert (marks, launches.spans) == ([0, 1], [(1, 2)])


def test_a_suppressed_launch_raises_where_no_launch_was_ever_counted():
    launches = Launches(suppress=True, fail=True)

    with pytest.raises(RuntimeError, match="suppressed"):
        launches.wrap(lambda: None)()
    assert launches.count == 0
