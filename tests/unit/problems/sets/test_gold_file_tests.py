"""Tests of gold files: which statements are kept, and how many calls they make."""

from __future__ import annotations

import ast
import math

import pytest

from tilewright.errors import ProblemError
from tilewright.problems.sets.gold_file_tests import (
    Form,
    count_calls,
    find_tests,
    form_of,
    operators_of,
    reads_arguments,
    without_runs,
)


def form_in(tests: str, gold: str) -> Form:
    return form_of(ast.parse(tests), operators_of(ast.parse(gold))["op"], "op")


def count(body: str, before: str = "") -> float:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    tree = ast.parse(f"{before}\ndef test_op():\n{lines}")
    return count_calls(tree, find_tests(tree), "op")


def kept(text: str) -> str:
    tree = ast.parse(text)
    return without_runs(text, tree, [test.name for test in find_tests(tree)])


@pytest.mark.parametrize(
    ("body", "calls"),
    [
        ("op(1)\nop(2)", 2),
        ("for s in (1.0, 2.0, 3.0):\n    op(s)", 3),
        ("for mode in ('a', 'b'):\n    for _ in range(3):\n        outs.append(op(mode))", 6),
        ("xs = [1, 2, 3]\nfor n, x in enumerate(xs):\n    op(x)", 3),
        ("xs = {'a': 1, 'b': 2}\nfor n, x in xs.items():\n    op(x)", 2),
        ("n = 4\nreturn [op(i) for i in range(n) for j in range(1, 3)]", 8),
        ("for a, b in zip((1, 2), (1, 2, 3)):\n    op(a)", 2),
        ("for a, b in itertools.product((1, 2), (1, 2, 3)):\n    op(a)", 6),
        ("xs = [1, 2]\nfor i in range(len(xs)):\n    op(i)", 2),
        ("for i in range(0):\n    op(i)\nelse:\n    op(1)", 1),
        ("if x:\n    op(1)\nelse:\n    op(2)", 2),
        ("try:\n    op(1)\nexcept ValueError:\n    pass", 1),
        ("op(op(1))", 2),
        ("def once(x):\n    return op(x)\nonce(1)\nonce(2)", 2),
        ("for i in range(1000):\n    other(i)\nop(1)", 1),
    ],
)  # fmt: skip
def test_calls_are_counted_as_often_as_loops_make_them(body, calls):
    assert count(body) == calls


@pytest.mark.parametrize(
    "body",
    [
        "while more():\n    op(1)",
        "for x in made():\n    op(x)",
        "xs = []\nxs.append(1)\nfor x in xs:\n    op(x)",
        "xs = [1]\nxs += [2]\nfor x in xs:\n    op(x)",
        "xs = {}\nxs['a'] = 1\nfor x in xs:\n    op(x)",
        "for x in [*more()]:\n    op(x)",
        "xs = ys\nys = xs\nfor x in xs:\n    op(x)",
        "for i in range(n):\n    op(i)",
        "check(op, 1)",
        "run = lambda x: op(x)",
        "def again(x):\n    op(x)\n    again(x)\nagain(1)",
    ],
)
def test_loops_without_a_literal_bound_count_as_infinite(body):
    assert count(body) == math.inf


def test_functions_and_literals_of_the_file_are_followed():
    before = "SHAPES = [(1, 2), (3, 4)]\ndef both(x):\n    return op(x), op(-x)\n"
    assert count("for shape in SHAPES:\n    both(shape)", before) == 4


def test_statements_that_use_test_results_are_removed():
    text = (
        "import torch\n"
        "torch.manual_seed(42)\n"
        "def test_op():\n"
        "    return op(1)\n"
        "def show():\n"
        "    print(test_results)\n"
        "test_results = test_op()\n"
        "first = test_results['a']\n"
        "print(test_results)\n"
        "for item in first:\n"
        "    print(item)\n"
        "show()\n"
        "print('done')\n"
    )
    lines = [line for line in kept(text).splitlines() if line]
    assert lines == [*text.splitlines()[:6], "print('done')"]


def test_every_test_that_the_file_runs_is_one():
    text = (
        "def test_a():\n    op(1)\n"
        "def test_b(x=1):\n    op(1)\n"
        "def test_c(x):\n    op(x)\n"
        "def test_d():\n    op(1)\n"
    )
    run = "a = test_a()\nif __name__ == '__main__':\n    test_b()\n    test_c(1)\n"
    assert [test.name for test in find_tests(ast.parse(text + run))] == ["test_a", "test_b"]
    assert [test.name for test in find_tests(ast.parse(text))] == ["test_a"]
    assert find_tests(ast.parse("def check():\n    op(1)\n")) == []


@pytest.mark.parametrize(
    ("tests", "positional", "keywords"),
    [
        ("op(1)", 1, ()),
        ("op(1)\nop(1, c=2)", 1, ("c",)),
        ("op(1, 2)\nop(1, b=2)", 2, ()),
        ("op(1, mode=1, b=2)\nother(out=1)", 1, ("b", "mode")),
        ("op(a=1)", 0, ("a",)),
        ("op(*given)", 3, ()),
        ("op(1, **more)", 1, ("b", "c", "mode", "out")),
        ("check(op, mode=1)", 1, ("b", "c", "mode", "out")),
    ],
)
def test_arguments_are_passed_in_a_form_that_the_tests_use(tests, positional, keywords):
    form = form_in(tests, "def op(a, b=1, c=2, *, mode=None, out=None):\n    pass")
    assert (form.positional, form.keywords) == (positional, keywords)


def test_an_operator_of_any_number_of_arguments_gets_all():
    form = form_in("op(1, 2)\nop(1, dim=1)", "def op(*xs, dim=0):\n    pass")
    assert (form.positional, form.keywords) == (None, ("dim",))


@pytest.mark.parametrize(
    ("gold", "names"),
    [
        ("class A(torch.autograd.Function):\n    pass\nop = A.apply", {"A", "op"}),
        ("def one():\n    pass\nop = one\nother = missing.apply", {"one", "op"}),
        ("class M(torch.nn.Module):\n    pass\nop = M.apply", set()),
        ("class A(Function):\n    pass\nop = A", {"A"}),
    ],
)
def test_functions_their_other_names_and_autograd_functions_are_operators(gold, names):
    assert set(operators_of(ast.parse(gold))) == names


def test_what_takes_any_keywords_must_get_the_same_ones_in_each_call():
    gold = "def op(a, **more):\n    pass"
    assert form_in("op(1, b=2)\nop(3, b=4)", gold) == Form(1, ("b",))
    for calls in ("op(1, b=2)\nop(3, c=4)", "op(1, **given)"):
        with pytest.raises(ProblemError, match="different ones"):
            form_in(calls, gold)


@pytest.mark.parametrize(
    ("body", "reads"),
    [
        ("op(x)\nreturn x", True),
        ("op(x, out=y)\nfound['a'] = y.clone()", True),
        ("x = made()\nreturn op(x)", False),
        ("a = op(x)\nb = op(x)\nreturn a, b", False),
        ("print(x)\nreturn op(x)", False),
    ],
)
def test_a_test_that_uses_an_argument_after_the_call_shows_what_was_written(body, reads):
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    tests = find_tests(ast.parse(f"def test_op():\n{lines}test_op()"))
    assert reads_arguments(tests, "op") is reads


def test_an_import_from_the_file_itself_is_left_out():
    text = "from op import op\nfrom other import thing\n\ndef test_op():\n    op(1)\n"
    kept = without_runs(text, ast.parse(text), ["test_op"], itself="op")
    assert "from op" not in kept
    assert "from other import thing" in kept
