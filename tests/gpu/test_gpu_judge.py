"""The judge on a GPU: one candidate of each kind gets its verdict."""

from __future__ import annotations

import pytest

from benchmarks.gpu import throughput
from benchmarks.gpu.requests import DEVICE
from benchmarks.gpu.smoke_cases import EXPECTED, LABELLED, SOFTMAX, cases, settings_of
from tilewright.api import build_request
from tilewright.evaluator.devices.devices import find_device
from tilewright.executors.local import LocalExecutor
from tilewright.problems.loader import parse_problem
from tilewright.scoring.occupancy import occupancy

pytestmark = pytest.mark.gpu
ALIGNED = """import torch


def work(x):
    made = [torch.empty(count, dtype=torch.uint8, device="cuda") for count in (1, 8, 5000)]
    odd = [value.data_ptr() % 512 for value in made if value.data_ptr() % 512]
    if odd:
        raise RuntimeError(f"memory at {odd} beyond a grain")
    return x.sum()
"""
CASES = {name: (problem, candidate) for name, problem, candidate in cases()}


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    with LocalExecutor(tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.mark.parametrize("name", CASES)
def test_each_kind_gets_its_verdict(local, name):
    problem, candidate = CASES[name]
    report = local.evaluate(build_request(candidate, problem, settings_of(name)))
    assert report.verdict == EXPECTED.get(name, "correct"), report.outcome
    labels = {label.name for label in report.labels}
    assert LABELLED.get(name) in {None, *labels}
    assert report.environment.device == find_device(DEVICE).name


def test_a_delay_on_the_device_is_seen_in_full(local):
    problem, candidate = CASES["delayed 20 us"]
    report = local.evaluate(build_request(candidate, problem, settings_of("delayed 20 us")))
    for item in report.comparisons:
        assert 15 < item.candidate.median_us - item.baseline_timing.median_us < 25


def test_coverage_is_between_zero_and_one(local):
    problem, candidate = CASES["half its own"]
    report = local.evaluate(build_request(candidate, problem, settings_of("half its own")))
    assert report.profile is not None
    assert 0.2 < report.profile.coverage < 0.8


def test_the_shapes_of_launches_are_reported(local):
    problem, candidate = CASES["half its own"]
    request = build_request(candidate, problem, settings_of("half its own"))
    report = local.evaluate(request.model_copy(update={"trace": True}))
    assert report.profile is not None
    (shape, *_) = report.profile.shapes
    assert shape.threads % 32 == 0
    assert shape.registers is not None
    assert shape.spilled_bytes == 0
    # The profiler reports library kernels too, whose spilled registers are unknown.
    traced = [item.shape for item in report.kernels if item.shape is not None]
    assert traced
    assert all(item.registers and item.spilled_bytes is None for item in traced)
    assert occupancy(shape, report.environment.host["arch"]) is not None


def test_a_candidate_of_several_replicates_is_compiled_once(tmp_path):
    requests = dict(throughput.requests("several pairs"))
    with LocalExecutor(tmp_path) as fresh:
        report = fresh.evaluate(requests["softmax 4 x2"])
    assert report.verdict == "correct", report.outcome
    assert [stage.name for stage in report.stages].count("precompile") == 1
    # Ten per replicate: below 20 us two replicates are planned.
    assert all(item.blocks >= 20 for item in report.comparisons)


def test_allocations_after_a_four_byte_output_are_aligned(local):
    text = SOFTMAX.replace("torch.softmax(x, dim=-1)", "x.sum()")
    problem = parse_problem(text, "test", "work", "the test's problem")
    report = local.evaluate(build_request(ALIGNED, problem, settings_of("aligned")))
    assert report.verdict == "correct", report.outcome


REFERENCE = """import torch

CASES = [{{"name": "only", "rows": 64, "cols": 128}}]


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return {body}
"""
CANDIDATE = """import torch


def {name}(x):
    if torch.backends.cuda.matmul.allow_tf32 != {allowed}:
        raise RuntimeError("the other precision")
    return {body}
"""


@pytest.mark.parametrize(("body", "allowed"), [("x @ x.t()", True), ("x.cumsum(1) * 2", False)])
def test_products_are_rounded_to_tf32_only_where_the_reference_is(local, body, allowed):
    problem = parse_problem(REFERENCE.format(body=body), "test", "work", "the test's problem")
    text = CANDIDATE.format(name=problem.entry, body=body, allowed=allowed)
    report = local.evaluate(build_request(text, problem, settings_of("delayed 20 us")))
    assert report.verdict == "correct", report.outcome


@pytest.mark.parametrize(
    ("returned", "verdict"),
    [
        ("x.mean().cpu()", "correct"),
        ("x.mean()", "correct"),
        ("(x.mean() * 1.1).cpu()", "incorrect"),
    ],
)
def test_an_output_on_the_host_is_compared(local, returned, verdict):
    problem = parse_problem(REFERENCE.format(body="x.mean().cpu()"), "test", "work", "the test")
    text = f"import torch\n\n\ndef {problem.entry}(x):\n    return {returned}\n"
    report = local.evaluate(build_request(text, problem, settings_of("delayed 20 us")))
    assert report.verdict == verdict, report.outcome


def test_an_output_on_the_host_is_wrong_if_that_of_the_reference_is_on_the_device(local):
    problem = parse_problem(REFERENCE.format(body="x.mean()"), "test", "work", "the test's problem")
    text = f"import torch\n\n\ndef {problem.entry}(x):\n    return x.mean().cpu()\n"
    report = local.evaluate(build_request(text, problem, settings_of("delayed 20 us")))
    assert report.verdict == "incorrect", report.outcome


def test_a_product_inside_of_another_operator_is_rounded_alike_by_judge_and_candidate(local):
    body = "torch.nn.functional.affine_grid(x.view(-1, 2, 3), (2730, 1, 8, 8), False)"
    text = REFERENCE.replace('64, "cols": 128', '2730, "cols": 6').format(body=body)
    problem = parse_problem(text, "test", "work", "the test's problem")
    candidate = f"import torch\n\n\ndef {problem.entry}(x):\n    return {body}\n"
    report = local.evaluate(build_request(candidate, problem, settings_of("delayed 20 us")))
    assert report.verdict == "correct", report.outcome
