"""Gold files: each call of their tests is a case, made as the tests make it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tilewright.errors import ProblemError
from tilewright.problems.candidates import make_candidate
from tilewright.problems.sets.gold_file import SEPARATOR, problem_of, split_gold
from tilewright.records import Candidate, Problem, SourceFile

GOLD = f"""import torch


def gelu_std(x, scale=1.0):
    return torch.nn.functional.gelu(x) * scale


{SEPARATOR}


def test_gelu_std():
    results = {{}}
    x = torch.randn(4)
    results["test_case_1"] = gelu_std(x)
    results["test_case_2"] = gelu_std(x, scale=2.0)
    return results


test_results = test_gelu_std()
print(test_results)
"""
SILENT = GOLD.replace("print(test_results)\n", "")


def gold(name: str, operator: str, *calls: str) -> str:
    """Return a gold file of an operator whose tests make these calls."""
    body = "".join(f"    {call}\n" for call in calls)
    tests = f"def test_{name}():\n    results = {{}}\n{body}    return results\n"
    return f"import torch\n\n{operator}\n\n{SEPARATOR}\n\n{tests}\nresults = test_{name}()\n"


def drawn(problem: Problem) -> list[list[Any]]:
    """Return the inputs of each case, as the judge draws them."""
    space: dict[str, Any] = {}
    exec(compile(problem.source.text, "problem.py", "exec"), space)
    return [space["inputs"](dict(case.params), None) for case in problem.cases]


def test_a_gold_file_is_split_into_implementation_and_tests():
    gold, tests = split_gold(GOLD, "gelu.py")
    assert gold.endswith("* scale")
    assert tests.startswith("def test_gelu_std")
    with pytest.raises(ProblemError, match=r"gelu\.py: no line of 146 '#'"):
        split_gold(GOLD.replace(SEPARATOR, "#" * 145), "gelu.py")


def test_each_call_of_the_tests_is_a_case():
    problem = problem_of(GOLD, "kernelbenchx/Activation/gelu_std", "gelu.py", category="Activation")
    assert (problem.entry, problem.category) == ("gelu_std", "Activation")
    assert [case.params for case in problem.cases] == [{"call": 0}, {"call": 1}]
    space: dict[str, object] = {}
    exec(compile(problem.source.text, "problem.py", "exec"), space)  # as the judge runs it
    assert "test_results" not in space
    x, scale = space["inputs"]({"call": 1}, None)  # type: ignore[operator]
    assert (tuple(x.shape), scale) == ((4,), 2.0)
    assert space["inputs"]({"call": 0}, None)[1] == 1.0  # type: ignore[operator]
    assert space["gelu_std"] is space["reference"]


LOOP = gold("relu", "def relu(x, scale=1.0):\n    return x.relu() * scale\n", *(
    "for s in (1.0, 2.0, 3.0):", "    results[s] = relu(torch.randn(4), scale=s)",
))  # fmt: skip
ROOT = "def root(x):\n    if x < 0:\n        raise ValueError\n    return x.sqrt()\n"
POSITIVE = gold("root", ROOT, *(
    "try:", "    root(torch.tensor(-1.0))", "except ValueError:", "    pass",
    "results['a'] = root(torch.tensor(4.0))",
))  # fmt: skip
DIVIDED = (
    "def divided(x, d, *, mode=None, out=None):\n    return torch.div(x, d, rounding_mode=mode)\n"
)
ROUNDED = gold("divided", DIVIDED, *(
    "divided(torch.ones(2), 0.3, mode='floor')", "divided(torch.ones(2), 0.4)",
))  # fmt: skip


def test_a_call_in_a_loop_is_as_many_cases():
    problem = problem_of(LOOP, "x/relu", "relu.py")
    assert [scale for _, scale in drawn(problem)] == [1.0, 2.0, 3.0]
    endless = LOOP.replace("for s in (1.0, 2.0, 3.0)", "for s in map(float, range(50))")
    many = problem_of(endless, "x/relu", "relu.py")
    assert len(many.cases) == 24
    assert [scale for _, scale in drawn(many)] == [float(number) for number in range(24)]
    # Of a loop whose end is not in the file there are cases enough, and its calls fill them.
    short = problem_of(LOOP.replace("(1.0, 2.0, 3.0)", "map(float, '123')"), "x/relu", "relu.py")
    assert [scale for _, scale in drawn(short)] == [1.0, 2.0, 3.0] * 8


def test_a_call_that_the_operator_refuses_is_no_case():
    problem = problem_of(POSITIVE, "x/root", "root.py")
    assert [x.item() for (x,) in drawn(problem)] == [4.0, 4.0]
    hopeless = POSITIVE.replace("    results['a'] = root(torch.tensor(4.0))\n", "")
    with pytest.raises(ValueError, match="no call that root answers"):
        drawn(problem_of(hopeless, "x/root", "root.py"))


def test_keyword_only_arguments_come_last():
    problem = problem_of(ROUNDED, "x/divided", "divided.py")
    # Not `out`: no call of the tests gives it.
    assert problem.keyword_args == ("mode",)
    assert [values[1:] for values in drawn(problem)] == [[0.3, "floor"], [0.4, None]]
    anyhow = ROUNDED.replace("mode='floor'", "**{'mode': 'floor'}")
    assert problem_of(anyhow, "x/divided", "divided.py").keyword_args == ("mode", "out")
    text = anyhow.replace("out=None", "**more")
    with pytest.raises(ProblemError, match=r"divided\.py: divided takes any keywords"):
        problem_of(text, "x/divided", "divided.py")


def test_an_input_is_recorded_before_the_call():
    text = gold("up", "def up(x):\n    return x.add_(1)\n", "x = torch.zeros(2)", "up(x)", "up(x)")
    assert [x.tolist() for (x,) in drawn(problem_of(text, "x/up", "up.py"))] == [[0, 0], [1, 1]]
    # What a test makes of a parameter cannot be deep-copied.
    text = gold("up", "def up(x):\n    return x + 1\n", "up(torch.ones(2, requires_grad=True) * 2)")
    assert [x.tolist() for (x,) in drawn(problem_of(text, "x/up", "up.py"))] == [[2, 2]]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GOLD.replace("def test_gelu_std", "def check"), "no function test_NAME"),
        (GOLD.replace("= gelu_std(x", "= other(x"), "calls no function of the gold part"),
        (GOLD.replace("results = {}", "results = {"), "not Python"),
    ],
)
def test_a_gold_file_that_cannot_be_used_is_named(text, says):
    with pytest.raises(ProblemError, match=f"gelu.py: .*{says}"):
        problem_of(text, "x/y", "gelu.py")


def test_a_gold_file_names_its_scoring_rule():
    def made(text: str, **options: object) -> Problem:
        return problem_of(text, "kernelbenchx/Activation/gelu", "gelu.py", **options)  # type: ignore[arg-type]

    assert (made(GOLD).official_comparison, made(GOLD).aliases) == (
        "by_dtype",
        ("gelu", "kernel_function"),
    )
    assert made(GOLD, printed=True).official_comparison == "by_dtype"
    assert made(SILENT, printed=True).official_comparison == "runs"
    by_another_name = SourceFile(path="a.py", text="def kernel_function(x, scale=1.0): return x")
    candidate = make_candidate((by_another_name,), made(GOLD), language="torch")
    assert isinstance(candidate, Candidate)
    assert candidate.entry == "kernel_function"


DOUBLED = """class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor=2.0):
        return x * factor
"""


@pytest.mark.parametrize("alias", ["", "doubled = Doubled.apply\n"])
def test_an_autograd_function_is_called_by_its_apply(alias):
    entry, call = ("doubled", "doubled") if alias else ("Doubled", "Doubled.apply")
    calls = ("x = torch.ones(2)", f"results['a'] = {call}(x)", f"results['b'] = {call}(x, 3.0)")
    problem = problem_of(gold("doubled", DOUBLED + alias, *calls), "x/doubled", "doubled.py")
    assert (problem.entry, problem.keyword_args, len(problem.cases)) == (entry, (), 2)
    assert [values[1:] for values in drawn(problem)] == [[], [3.0]]
    space: dict[str, Any] = {}
    exec(problem.source.text, space)
    assert space["reference"](torch.ones(1)).tolist() == [2.0]


def test_the_tests_end_after_the_call_of_the_case():
    calls = ("results['a'] = root(torch.tensor(4.0))", "raise RuntimeError('a later test fails')")
    problem = problem_of(gold("root", ROOT, *calls), "x/root", "root.py")
    assert [float(x) for (x,) in drawn(problem)] == [4.0]


def test_what_a_test_reads_of_its_arguments_is_compared():
    up = "def up(x):\n    x.add_(1)\n"
    text = gold("up", up, "x = torch.zeros(2)", "up(x)", "results['a'] = x.clone()")
    assert problem_of(text, "x/up", "up.py").compares_overwritten
    assert not problem_of(POSITIVE, "x/root", "root.py").compares_overwritten


KERNEL = """import triton


@triton.jit(debug=True)
def kernel(x):
    pass


def pack(x):
    return x.half(), 8


def _launch(x):
    kernel[(1,)](x)
    return x


def doubled(x):
    return _launch(x)
"""


@pytest.mark.parametrize(
    ("operator", "entry"),
    [(KERNEL, "doubled"), (KERNEL.replace("@triton.jit(debug=True)\n", ""), "pack")],
)
def test_an_operator_that_launches_no_kernel_prepares_inputs(operator, entry):
    text = gold("doubled", operator, "x, bits = pack(torch.randn(4))", "results['a'] = doubled(x)")
    assert problem_of(text, "doubled", "doubled.py").entry == entry
