"""References that write into their arguments, leave elements unwritten, or ask for a GPU."""

from __future__ import annotations

import pytest

from tests.in_process_evaluator import a_request, timed
from tilewright.errors import ProblemError
from tilewright.records import EvalReport, Incorrect, Rejected, Unjudged

IN_PLACE = """import torch

CASES = [{"name": "one", "n": 300}]


def inputs(case, generator):
    x, total = (torch.randn(case["n"], 8, generator=generator) for _ in range(2))
    return x, total


def reference(x, total):
    total.add_(x.exp())
"""
STEP = """import torch


def work(x, total):
    %s
"""


def judged(evaluator, problem: str, candidate: str) -> EvalReport:
    return evaluator.judge(a_request(problem, candidate, **timed()))


@pytest.mark.parametrize("body", ["total += torch.exp(x)", "total[:] = total + x.exp()"])
def test_a_candidate_that_writes_the_right_argument_is_correct(evaluator, body):
    report = judged(evaluator, IN_PLACE, STEP % body)
    assert report.verdict == "correct", report.outcome
    assert report.comparisons


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "total += 1.001 * torch.exp(x)",
        "total[1:] += x[1:].exp()",
        "total = total + x.exp()",
        "total += x.exp() * (torch.randn(()).item() > -9 and not globals().setdefault('n', 0))\n"
        "    globals()['n'] = 1",
    ],
)
def test_a_candidate_that_writes_less_or_something_else_is_incorrect(evaluator, body):
    report = judged(evaluator, IN_PLACE, STEP % body)
    assert isinstance(report.outcome, Incorrect), report.outcome
    assert report.outcome.kind == "values"


def test_a_candidate_that_returns_what_the_reference_does_not_is_incorrect(evaluator):
    report = judged(evaluator, IN_PLACE, STEP % "return total.add_(x.exp())")
    assert isinstance(report.outcome, Incorrect), report.outcome
    assert report.outcome.kind == "count"


def test_a_candidate_that_writes_another_argument_too_is_rejected(evaluator):
    report = judged(evaluator, IN_PLACE, STEP % "total += x.exp()\n    x.zero_()")
    assert isinstance(report.outcome, Rejected), report.outcome
    assert report.findings[0].code == "input_mutation"


def test_a_reference_that_does_nothing_visible_is_an_error_of_the_problem(evaluator):
    problem = IN_PLACE.replace("total.add_(x.exp())", "pass")
    with pytest.raises(ProblemError, match="returned no tensor and overwrote no argument"):
        judged(evaluator, problem, STEP % "pass")


BOTH = IN_PLACE.replace("total.add_(x.exp())", "return total.add_(x.exp()).sum(-1)")


@pytest.mark.parametrize("compares", [True, False])
def test_what_is_written_beside_an_output_counts_if_the_problem_says_so(evaluator, compares):
    request = a_request(BOTH, STEP % "return (total + x.exp()).sum(-1)")
    problem = request.problem.model_copy(update={"compares_overwritten": compares})
    report = evaluator.judge(request.model_copy(update={"problem": problem}))
    assert report.verdict == ("incorrect" if compares else "correct")


PARTLY = """import torch

CASES = [{"name": "one", "n": 40}]


def inputs(case, generator):
    return (torch.randn(case["n"], 128, generator=generator),)


def reference(x):
    out = torch.empty(x.shape)
    out[:, :96] = x[:, :96].tanh()
    return out
"""
WHOLE = "import torch\n\n\ndef work(x):\n    return x.tanh()%s\n"


def test_elements_that_the_reference_leaves_unwritten_are_not_compared(evaluator):
    report = judged(evaluator, PARTLY, WHOLE % "")
    assert report.verdict == "correct", report.outcome
    (label,) = [item for item in report.labels if item.name == "partly_undefined_reference"]
    assert "25.0%" in label.detail
    wrong = judged(evaluator, PARTLY, WHOLE % " * (1 + 1e-3)")
    assert isinstance(wrong.outcome, Incorrect)


def test_a_reference_that_writes_nothing_is_unsound(evaluator):
    problem = PARTLY.replace("    out[:, :96] = x[:, :96].tanh()\n", "")
    report = judged(evaluator, problem, WHOLE % "")
    assert isinstance(report.outcome, Unjudged)
    assert report.outcome.reason == "unsound_problem"
    assert "no element" in report.outcome.message


def test_memory_that_is_written_before_it_is_read_is_no_weakness(evaluator):
    problem = PARTLY.replace("out[:, :96] = x[:, :96].tanh()", "out.copy_(x.tanh())")
    report = judged(evaluator, problem, WHOLE % "")
    assert report.verdict == "correct", report.outcome
    assert [item for item in report.labels if item.name == "partly_undefined_reference"] == []


BEYOND = """import torch  # a kernel of triton that loads whole blocks reads so

CASES = [{"name": "one", "n": 300}]


def inputs(case, generator):
    return (torch.randn(case["n"], generator=generator),)


def reference(x):
    whole = x.as_strided((320,), (1,), x.storage_offset())
    return torch.cat([x.tanh(), whole[300:] * 2])
"""


def test_elements_that_follow_from_memory_beyond_the_inputs_are_not_compared(evaluator):
    candidate = "import torch\n\n\ndef work(x):\n    return torch.cat([x.tanh(), x[:20]])%s\n"
    report = evaluator.judge(a_request(BEYOND, candidate % ""))
    assert report.verdict == "correct", report.outcome
    (label,) = [item for item in report.labels if item.name == "partly_undefined_reference"]
    assert "6.2%" in label.detail
    wrong = evaluator.judge(a_request(BEYOND, candidate % " * (1 + 1e-3)"))
    assert isinstance(wrong.outcome, Incorrect)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_reference_that_writes_around_its_arguments_is_unsound(evaluator, dtype):
    problem = BEYOND.replace(
        "generator=generator)", f"generator=generator).mul(9).to(torch.{dtype})"
    )
    problem = problem.replace("return torch.cat([x.tanh(), whole[300:] * 2])", "return x.tanh()")
    sound = evaluator.judge(a_request(problem, DOUBLED.replace("(x * 2)", "x")))
    assert sound.verdict == "correct", sound.outcome
    written = problem.replace("    return x.tanh()", "    whole[301:303] = 0\n    return x.tanh()")
    report = evaluator.judge(a_request(written, DOUBLED.replace("(x * 2)", "x")))
    assert report.verdict == "unjudged"
    assert "memory around its arguments" in report.outcome.message


def test_a_product_with_zero_does_not_define_an_element(evaluator):
    problem = BEYOND.replace("whole[300:] * 2", "whole[300:] * 0")
    candidate = "import torch\n\n\ndef work(x):\n    return torch.cat([x.tanh(), x[:20]])\n"
    report = evaluator.judge(a_request(problem, candidate))
    assert report.verdict == "correct", report.outcome
    assert "partly_undefined_reference" in [item.name for item in report.labels]


ON_CUDA = """import torch

CASES = [{"name": "one", "n": 40}]


def inputs(case, generator):
    return (torch.randn(case["n"], 8, device="cuda").cuda(),)


def reference(x):
    return (x * 2).tanh()
"""
IN_REFERENCE = ON_CUDA.replace("(x * 2)", "(x.to('cuda:0') * torch.tensor(2.0, device='cuda'))")
DOUBLED = "import torch\n\n\ndef work(x):\n    return (x * 2).tanh()\n"


@pytest.mark.parametrize(("problem", "is_timed"), [(ON_CUDA, True), (IN_REFERENCE, False)])
def test_problem_code_that_asks_for_a_gpu_gets_the_cpu_and_the_report_says_so(
    evaluator, problem, is_timed
):
    report = judged(evaluator, problem, DOUBLED)
    assert report.verdict == "correct", report.outcome
    labels = {item.name: item.detail for item in report.labels}
    assert "cuda_on_cpu" in labels
    assert bool(report.comparisons) is is_timed
    assert ("not_timed" in labels) is not is_timed


def test_a_candidate_that_asks_for_a_gpu_gets_none(evaluator):
    report = judged(evaluator, ON_CUDA, DOUBLED.replace("x * 2", "x.cuda() * 2"))
    assert report.verdict == "failed"


def test_a_variation_that_the_reference_refuses_is_skipped(evaluator):
    problem = IN_PLACE.replace("    total.add_", "    assert bool((x < 50).all())\n    total.add_")
    report = judged(evaluator, problem, STEP % "total += x.exp()")
    assert report.verdict == "correct", report.outcome
    refused = [
        item for item in report.cases if item.detail and "refuses such inputs" in item.detail
    ]
    assert refused
    assert {item.result for item in refused} == {"skipped"}


COUNTED = """CASES = [{"name": "one", "n": 128}]


def inputs(case, generator):
    import torch
    return (torch.randn(case["n"], 4, generator=generator),)


def reference(x):
    return x.tanh(), x.shape[0] // 2, 0.5, True
"""


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ("x.tanh(), 64, 0.5, True", "correct"),
        ("x.tanh(), 65, 0.5, True", "incorrect"),
        ("x.tanh(), 64.0, 0.5, True", "incorrect"),
        ("x.tanh(), 'many', 0.5, True", "incorrect"),
    ],
)
def test_numbers_are_outputs(evaluator, given, verdict):
    report = judged(evaluator, COUNTED, f"def work(x):\n    return {given}\n")
    assert report.verdict == verdict, report.outcome
