"""Small gold files in the format of TritonBench, evaluated against themselves and with a fault."""

from __future__ import annotations

import pytest

from tests.in_process_evaluator import a_request, timed
from tests.unit.problems.sets.test_gold_file import gold
from tilewright.problems.sets.gold_file import problem_of
from tilewright.records import Candidate, EvalReport, EvalRequest, Problem, SourceFile

STEP = "def step(param, grad, rate=0.1):\n    param.sub_(grad * rate)\n"
PARTLY = """def head(x):
    out = torch.empty_like(x)
    out[:, :3] = x[:, :3].exp()
    return out
"""
CUBED = """class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x * x


cubed = Cubed.apply
"""
SCALED = """class Scale:
    def __init__(self, weight):
        self.weight = weight


def scaled(scale, x):
    return scale.weight * x
"""
SINE = "def itself(x):\n    return x.sin()\n"
TANH = "def empty(x):\n    return x.tanh()\n"
GOLDS = {
    "step": (
        gold("step", STEP, "p, g = torch.randn(6, device='cuda'), torch.randn(6, device='cuda')",
             "step(p, g)", "results['a'] = p.clone()"),
        ("grad * rate", "grad * rate * 1.01"),
        {"cuda_on_cpu"},
    ),
    "head": (
        gold("head", PARTLY, "results['a'] = head(torch.randn(70, 4).cuda())"),
        (".exp()", ".expm1()"),
        {"cuda_on_cpu", "partly_undefined_reference"},
    ),
    "cubed": (
        gold("cubed", CUBED, "results['a'] = cubed(torch.randn(5))"),
        ("x * x * x", "x * x"),
        set(),
    ),
    "itself": (
        gold("itself", SINE, "results['a'] = itself(torch.randn(5))")
        .replace("def test_itself", "from itself import itself\n\ndef test_itself"),
        (".sin()", ".cos()"),
        set(),
    ),
    "empty": (
        gold("empty", TANH, "results['a'] = empty(torch.randn(9))",
             "results['b'] = empty(torch.randn(0))"),
        (".tanh()", ".sinh()"),
        set(),
    ),
    "scaled": (
        gold("scaled", SCALED, "results['a'] = scaled(Scale(torch.randn(5)), torch.randn(5))"),
        ("scale.weight * x", "scale.weight + x"),
        set(),
    ),
    "literal": (
        gold("literal", "def literal(x):\n    return x * 2.0\n",
             "results['a'] = literal(torch.tensor([1.0, 2.5, -3.0]))"),
        ("x * 2.0", "x.new_tensor([2.0, 5.0, -6.0]) + 0 * x"),
        {"seed_ignored"},
    ),
}  # fmt: skip
"""Text of each gold file, the fault of a wrong candidate, and labels of a right one."""


def evaluated(evaluator, problem: Problem, text: str, entry: str) -> EvalReport:
    source = SourceFile(path="candidate.py", text=text)
    template = a_request("CASES = [{'name': 'x'}]\n\n\ndef inputs(case, generator):\n    pass\n\n\n"
                         "def reference():\n    pass\n", "pass", **timed())  # fmt: skip
    candidate = Candidate(language="torch", files=(source,), entry=entry)
    request: EvalRequest = template.model_copy(update={"problem": problem, "candidate": candidate})
    return evaluator.judge(request)


@pytest.mark.parametrize("name", GOLDS)
def test_a_gold_file_is_correct_against_itself_and_a_fault_in_it_is_found(evaluator, name):
    text, (right, wrong), labels = GOLDS[name]
    problem = problem_of(text, f"tritonbench/t/{name}", f"{name}.py")
    report = evaluated(evaluator, problem, problem.source.text, "reference")
    assert report.verdict == "correct", report.outcome
    assert labels <= {item.name for item in report.labels}

    faulty = problem.source.text.replace(right, wrong, 1)
    assert faulty != problem.source.text
    report = evaluated(evaluator, problem, faulty, problem.entry)
    assert report.verdict == "incorrect", report.outcome


def test_a_literal_input_has_other_values_in_the_variation_moved(evaluator):
    text, _, _ = GOLDS["literal"]
    problem = problem_of(text, "tritonbench/t/literal", "literal.py")
    report = evaluated(evaluator, problem, problem.source.text, "reference")
    assert [item.input_variation for item in report.cases if item.result == "pass"].count("moved")
