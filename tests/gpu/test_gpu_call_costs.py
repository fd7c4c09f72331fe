"""A call costs in the judge what it costs in a process of its own, without the judge."""

from __future__ import annotations

import linecache
import statistics
from typing import Any

import pytest
import torch

from tilewright.api import build_request
from tilewright.config import load
from tilewright.executors.local import LocalExecutor
from tilewright.problems.loader import parse_problem
from tilewright.records import EvalReport

pytestmark = pytest.mark.gpu
ROWS, COLS = 8192, 4096
COPY_US = 60.0
"""Time that the copy of an output takes at least: an H200 reads and writes 268 MB in 56 us at its
4.8 TB/s, and reaches less."""
PROBLEM = f"""import torch

CASES = [{{"name": "only", "rows": {ROWS}, "cols": {COLS}}}]
ENTRY = "work"
"""
INPUTS = """

def inputs(case, generator):
    shape = case["rows"], case["cols"]
    return tuple(torch.randn(shape, generator=generator) for _ in range(2))


def reference(x, y):
"""
SCALED = PROBLEM + 'DONATES = ["x"]\n' + INPUTS + "    return x * 3 + y\n"
KEPT = PROBLEM + INPUTS + "    return x * 3 + y\n"
IN_PLACE = "def work(x, y):\n    return x.mul_(3).add_(y)\n"
WAITING = "def work(x, y):\n    x[0].sum().item()\n    return x * 3 + y\n"
BODY = "    s = x + y\n    return s.relu(), s\n"
SUMMED = PROBLEM + 'GRADS = ["x", "y"]\n' + INPUTS + BODY
BOTH = PROBLEM + INPUTS + "    return x * 3 + y, x * y\n"
TUNED = """import torch
import triton
import triton.language as tl

configs = [triton.Config({"BLOCK": size}, num_warps=4) for size in (1024, 2048)]


@triton.autotune(configs, key=["count"])
@triton.jit
def compute(x, y, out, count, product: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    first, second = tl.load(x + place, mask), tl.load(y + place, mask)
    tl.store(out + place, first * second if product else first * 3 + second, mask)


def work(x, y):
    outputs = []
    for product in (False, True):
        outputs.append(torch.empty_like(x))
        grid = lambda chosen: (triton.cdiv(x.numel(), chosen["BLOCK"]),)
        compute[grid](x, y, outputs[-1], x.numel(), product)
    return tuple(outputs)
"""


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    with LocalExecutor(tmp_path_factory.mktemp("home")) as made:
        yield made


def judged(local: LocalExecutor, candidate: str, text: str) -> EvalReport:
    settings = load(overrides=["eval.device=cuda"], environ={})
    problem = parse_problem(text, "test", "work", "the test's problem")
    return local.evaluate(build_request(candidate, problem, settings))


def judged_us(report: EvalReport) -> float:
    assert report.verdict == "correct", report.outcome
    return report.comparisons[0].candidate.median_us


def plain_us(candidate: str, *, grads: bool = False, waits: bool = False) -> float:
    """Return the time between two events around a call, with hidden launches and a cold cache."""
    found: dict[str, Any] = {"__name__": "candidate"}
    # Triton reads the source of a kernel.
    linecache.cache["candidate.py"] = (len(candidate), None, candidate.splitlines(True), "")
    exec(compile(candidate, "candidate.py", "exec"), found)
    cache = torch.zeros(1 << 26, device="cuda")
    x, y = (torch.randn(ROWS, COLS, device="cuda", requires_grad=grads) for _ in range(2))
    ones = torch.ones(ROWS, COLS, device="cuda")
    times = []
    for _ in range(30):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(200_000 if waits else 20_000_000)
        cache.sum()
        begin.record()
        outputs = found["work"](x, y)
        if grads:
            torch.autograd.grad(outputs, (x, y), (ones, ones))
        end.record()
        torch.cuda.synchronize()
        times.append(1000 * begin.elapsed_time(end))
    return statistics.median(times)


def test_a_result_in_an_input_that_may_be_overwritten_is_not_copied(local):
    found = judged_us(judged(local, IN_PLACE, SCALED))
    assert found < plain_us(IN_PLACE) + COPY_US / 2


def test_an_input_that_is_returned_as_it_was_is_no_result(local):
    assert judged(local, "def work(x, y):\n    return x\n", SCALED).verdict != "correct"


def test_one_gradient_of_two_inputs_is_not_copied(local):
    candidate = "def work(x, y):\n" + BODY
    found = judged_us(judged(local, candidate, SUMMED))
    assert found < plain_us(candidate, grads=True) + COPY_US / 2


def test_a_tuner_leaves_no_memory_from_which_outputs_have_to_be_copied(local):
    found = judged_us(judged(local, TUNED, BOTH))
    assert found < plain_us(TUNED) + COPY_US / 2


def test_a_wait_for_the_device_costs_what_it_costs_elsewhere(local):
    report = judged(local, WAITING, KEPT)
    assert "host_synchronizing" in {label.name for label in report.labels}
    # Two processes share the device, and the judge learns of the call's end from the host. On a
    # slow host that takes longer: 144 us where the call itself takes 189 us.
    plain = plain_us(WAITING, waits=True)
    assert judged_us(report) < plain + max(120.0, plain)


def test_an_output_in_the_order_of_the_references_is_not_copied(local):
    permuted = "def work(x, y):\n    return (x * 3 + y).t()\n"
    report = judged(local, permuted, PROBLEM + INPUTS + "    return (x * 3 + y).t()\n")
    baseline = report.comparisons[0].baseline_timing.median_us
    for found in (judged_us(report), baseline):
        assert found < plain_us(permuted) + COPY_US / 2


def test_one_in_another_order_is_copied(local):
    contiguous = PROBLEM + INPUTS + "    return (x * 3 + y).t().contiguous()\n"
    permuted = "def work(x, y):\n    return (x * 3 + y).t()\n"
    found = judged_us(judged(local, permuted, contiguous))
    assert found > plain_us(permuted) + COPY_US
