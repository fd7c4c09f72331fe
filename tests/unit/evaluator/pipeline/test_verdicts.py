"""Whole evaluations in one process: the verdict of each kind of candidate.

`python -m benchmarks --only planted_bugs` plants bugs that these tests must find.
"""

from __future__ import annotations

import fcntl
import json
import threading
from typing import Any

import pytest

from tests.in_process_evaluator import ROOT, a_request, timed
from tilewright.errors import ProblemError
from tilewright.evaluator.processes.host import lease_name
from tilewright.evaluator.processes.prefork import lease_folder
from tilewright.evaluator.seeds import derive
from tilewright.records import Baseline, Candidate, Incorrect, SourceFile, Unjudged

PROBLEM = """import torch

CASES = [{"name": "small", "n": 16}, {"name": "large", "n": 48}]
VARY = {"sizes": {"n": [1, 64]}}


def inputs(case, generator):
    return (torch.rand(case["n"], 8, generator=generator),)


def reference(x):
    return x * 3 + 1, x.sum(-1)
"""
HONEST = """import torch


def work(x):
    return x * 3 + 1, x.sum(-1)
"""
MODULE = """import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.rand(16, 8)]


def get_init_inputs():
    return []
"""


def wrong_where(condition: str) -> str:
    return HONEST.replace("    return", f"    if {condition}:\n        x = x + 1\n    return")


def test_an_honest_candidate_is_correct_on_every_input_sample(evaluator):
    report = evaluator.judge(a_request(PROBLEM, HONEST))

    assert report.verdict == "correct", report.outcome
    sample = {(case.case, case.input_variation) for case in report.cases if case.result == "pass"}
    assert {("small", "nominal"), ("large", "nominal")} <= sample
    assert {f"hidden {number}" for number in (1, 2, 3)} <= {case for case, _ in sample}
    assert len({variation for _, variation in sample}) >= 3
    assert len({case.seed for case in report.cases}) == len(report.cases)


@pytest.mark.parametrize(
    "condition",
    ["True", "x.shape[0] not in (16, 48)", "bool((x < 0).any()) or bool((x > 1).any())"],
)
def test_a_candidate_that_is_wrong_for_some_inputs_is_incorrect(evaluator, condition):
    report = evaluator.judge(a_request(PROBLEM, wrong_where(condition)))

    assert isinstance(report.outcome, Incorrect)
    assert report.outcome.kind == "values"
    assert report.outcome.error_over_tolerance > 1
    assert report.speedup is None


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("x * 3 + 1, x.sum(-1) + 1", "values"),
        ("x * 3 + 1, x.sum(-1) * float('nan')", "nonfinite"),
        ("x * 3 + 1, x.sum(-1).double()", "dtype"),
        ("x * 3 + 1, x.sum(-1, keepdim=True)", "shape"),
        ("x * 3 + 1", "count"),
    ],
)
def test_type_shape_and_structure_of_each_output_must_agree(evaluator, answer, kind):
    report = evaluator.judge(a_request(PROBLEM, f"def work(x):\n    return {answer}\n"))

    assert isinstance(report.outcome, Incorrect)
    assert report.outcome.kind == kind


@pytest.mark.parametrize("call", ["untimed", "timed"])
def test_an_output_that_is_a_view_is_judged_by_its_values(evaluator, call):
    strided = "torch.stack((x * 3 + 1, x), -1)[..., 0], x.T.contiguous().T.sum(-1)"
    source = f"import torch\n\n\ndef work(x):\n    return {strided}\n"
    report = evaluator.judge(a_request(LARGE, source, **(timed(4) if call == "timed" else {})))

    assert report.verdict == "correct", report.outcome
    assert report.findings == ()


def test_the_runner_receives_no_secret(evaluator):
    report = evaluator.judge(a_request(PROBLEM, HONEST))
    told = evaluator.told()

    for secret in (ROOT, *(case.seed for case in report.cases)):
        assert secret not in told
    assert str(derive(ROOT, "inputs", "small", "nominal", 0)) in {c.seed for c in report.cases}
    calls = [fields for child in json.loads(told) for kind, fields in child if kind == "call"]
    known = {
        "base",
        "size",
        "args",
        "grads",
        "grad_outputs",
        "forward_seed",
        "writable",
        "shared",
        "strides",
    }
    assert {key for fields in calls for key in fields} == {*known, "expected", "count_operators"}
    for fields in calls:
        assert all(set(item) == {"dtype", "shape"} for item in fields["expected"])


def test_an_overwritten_input_rejects_the_candidate(evaluator):
    report = evaluator.judge(a_request(PROBLEM, HONEST.replace("x.sum", "x.add_(1).sub_(0.5).sum")))

    assert report.verdict in ("incorrect", "rejected")
    report = evaluator.judge(
        a_request(PROBLEM, HONEST.replace("    return", "    y = x\n    return"))
    )
    assert report.verdict == "correct"
    zeroing = HONEST.replace("    return x * 3 + 1, x.sum(-1)", "    y = x * 3 + 1, x.sum(-1)")
    report = evaluator.judge(a_request(PROBLEM, f"{zeroing}    x.zero_()\n    return y\n"))
    assert [finding.code for finding in report.findings] == ["input_mutation"]
    assert report.verdict == "rejected"


def test_a_random_reference_leaves_the_candidate_unjudged(evaluator):
    noisy = PROBLEM.replace("x * 3 + 1", "x * torch.rand_like(x)")
    report = evaluator.judge(a_request(noisy, HONEST))

    assert isinstance(report.outcome, Unjudged)
    assert report.outcome.reason == "nondeterministic_reference"


def test_a_stateful_reference_is_named_as_stateful(evaluator):
    counting = PROBLEM.replace("x * 3 + 1", "x * 3 + len(KEPT.append(0) or KEPT)") + "\nKEPT = []\n"
    report = evaluator.judge(a_request(counting, HONEST))

    assert isinstance(report.outcome, Unjudged)
    assert report.outcome.reason == "stateful_reference"


@pytest.mark.parametrize("source", ["raise OSError", "def work(x):\n    raise OSError\n"])
def test_a_failing_baseline_leaves_the_candidate_unjudged(evaluator, source):
    broken = Candidate(
        language="torch", files=(SourceFile(path="b.py", text=source),), entry="work"
    )
    baselines = (Baseline(name="b", kind="candidate", candidate=broken),)

    with pytest.raises(ProblemError, match="baseline 'b' failed"):
        evaluator.judge(a_request(PROBLEM, HONEST, baselines=baselines, **timed()))


@pytest.mark.parametrize(
    ("layer", "verdict"), [("ipc_uts_cgroup_namespaces", "correct"), ("landlock", "unjudged")]
)
def test_without_a_required_layer_nothing_is_run(evaluator, layer, verdict):
    report = evaluator.judge(a_request(PROBLEM, HONEST, require_isolation=(layer,)))

    assert report.verdict == verdict
    assert (verdict == "correct") == ('"call"' in evaluator.told())


def test_folded_weights_are_named(evaluator):
    folded = MODULE.replace("class Model", "class ModelNew").replace(
        "        super().__init__()",
        "        super().__init__()\n        state = torch.random.get_rng_state()\n"
        "        self.w = (torch.nn.Linear(8, 8),)\n        torch.random.set_rng_state(state)",
    )
    folded = folded.replace("self.linear(x)", "self.w[0](x)")
    report = evaluator.judge(a_request(MODULE, folded))

    assert isinstance(report.outcome, Incorrect)
    assert report.outcome.kind == "weights"
    honest = MODULE.replace("class Model", "class ModelNew")
    assert evaluator.judge(a_request(MODULE, honest)).verdict == "correct"


LATE = """import torch

calls = [0]


def work(x):
    calls[0] += 1
    late = calls[0] > 22  # beyond all untimed calls and the warm-up
    {what}
"""
LARGE = PROBLEM.replace('{"name": "small", "n": 16}, ', "")


def test_an_honest_candidate_is_correct_when_timed_too(evaluator):
    report = evaluator.judge(a_request(LARGE, HONEST, **timed(10)))

    assert report.verdict == "correct", report.outcome
    assert report.findings == ()
    assert report.speedup is not None


@pytest.mark.reads_settings
def test_a_baseline_that_sleeps_in_its_calls_causes_no_finding(evaluator):
    """It uses less CPU time than its calls take: that is no negative amount to be measured by."""
    text = HONEST.replace("import torch\n", "import time\n").replace(
        "    return", "    time.sleep(0.005)\n    return"
    )
    waiting = Candidate(language="torch", files=(SourceFile(path="b.py", text=text),), entry="work")
    baselines = (Baseline(name="b", kind="candidate", candidate=waiting),)
    report = evaluator.judge(a_request(LARGE, HONEST, baselines=baselines, **timed(4)))

    assert report.verdict == "correct", report.outcome
    assert report.findings == ()


def test_a_call_that_is_wrong_only_when_timed_is_incorrect(evaluator):
    source = LATE.replace("{what}", "return x * 3 + 1 + late, x.sum(-1)")
    report = evaluator.judge(a_request(LARGE, source, **timed(10)))

    assert report.verdict == "incorrect"
    assert report.outcome.case == "large, timed"
    assert "incorrect_when_timed" in [finding.code for finding in report.findings]
    assert report.speedup is None


def test_inputs_may_not_be_overwritten_only_when_timed(evaluator):
    source = LATE.replace("{what}", "y = x * 3 + 1, x.sum(-1)\n    x.mul_(1 - late)\n    return y")
    report = evaluator.judge(a_request(LARGE, source, **timed(10)))

    assert report.verdict == "rejected"
    assert [finding.code for finding in report.findings] == ["input_mutation"]


def test_the_official_protocol_makes_five_trials_per_case(evaluator):
    report = evaluator.judge(a_request(PROBLEM, HONEST, protocol="official"))

    assert len(report.cases) == 10
    assert len({case.seed for case in report.cases}) == 10


def test_the_lease_is_held_while_a_candidate_runs(evaluator):
    seen = []

    def emit(event: str, fields: Any) -> None:  # noqa: ARG001
        if event == "sample":
            with open(path, "a", encoding="ascii") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    seen.append("free")
                except BlockingIOError:
                    seen.append("taken")

    path = lease_folder() / f"{lease_name(evaluator.device, evaluator.cores)}.lock"
    evaluator.judge(a_request(PROBLEM, HONEST), emit)

    assert {"taken"} == set(seen)
    with evaluator.lease(lambda _: seen.append("waits"), lambda: None):
        assert "waits" not in seen


def test_a_second_evaluation_waits_for_the_lease_and_reports_it(evaluator):
    said, got = threading.Event(), threading.Event()

    def second() -> None:
        with evaluator.lease(lambda _: said.set(), lambda: None):
            got.set()

    with evaluator.lease(lambda _: None, lambda: None):
        thread = threading.Thread(target=second)
        thread.start()
        assert said.wait(5)
        assert not got.wait(0.1)
    assert got.wait(5)
    thread.join()
