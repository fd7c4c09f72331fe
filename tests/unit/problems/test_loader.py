"""Problem files are parsed and never run; errors name their line."""

from __future__ import annotations

import ast
import gc
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import ProblemError
from tilewright.languages.syntax import parse_tree
from tilewright.problems.loader import (
    BUNDLED,
    bundled_names,
    find_problem,
    parse_problem,
    read_problem,
)
from tilewright.records import Problem

FUNCTION = """
import torch

ENTRY = "twice"
CASES = [{"name": "small", "n": 3}, {"n": 4, "half": True, "scale": 0.5, "mode": "x"}]
VARY = {"sizes": {"n": (1, 9)}, "contents": ["nominal", "sign"]}
GRADS = ["x"]
DONATES = ["y"]
PRECISION = "fp32"
TOLERANCE = 1e-4


def inputs(case, generator):
    raise SystemExit("a problem is never run here")


def reference(x, y):
    return x * 2
"""
MODULE = """
from somewhere import get_inputs

MODE = "eval"


class Model:
    pass
"""


def parse(text: str) -> Problem:
    return parse_problem(text, "set/one", "one", "file.py")


def test_a_function_problem_is_read():
    problem = parse(FUNCTION)

    assert (problem.id, problem.kind, problem.entry) == ("set/one", "function", "twice")
    assert [case.name for case in problem.cases] == ["small", "case 2"]
    assert problem.cases[0].params == {"n": 3}
    assert problem.cases[1].params == {"n": 4, "half": True, "scale": 0.5, "mode": "x"}
    assert problem.size_ranges == {"n": (1, 9)}
    assert problem.input_variations == ("nominal", "sign")
    assert (problem.grads, problem.writable_inputs) == (("x",), ("y",))
    assert (problem.precision, problem.tolerance, problem.mode) == ("fp32", 1e-4, "train")
    assert problem.source.text == FUNCTION


def test_without_an_entry_the_stem_is_the_entry():
    assert parse(FUNCTION.replace('ENTRY = "twice"', "")).entry == "one"


def test_a_module_problem_is_read():
    problem = parse(MODULE)

    assert (problem.kind, problem.entry, problem.mode) == ("module", "ModelNew", "eval")
    assert [case.name for case in problem.cases] == ["default"]
    assert problem.input_variations is None


def test_names_may_be_bound_in_any_way():
    text = "from a import f as reference\nimport inputs\nCASES = [{'n': 1}]\n"

    assert parse(text).kind == "function"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def reference(x, y):", "def refrence(x, y):", "not a problem: it defines neither"),
        ("def inputs", "def input", "not a problem"),
        ("import torch", "import", "not Python"),
        ("import torch", "x = '\0'", "not Python"),
        ("CASES = [", "CASES = list([", "not Python"),
        ("CASES = [", "CASES = [] and [", "CASES must be a literal: it is read without running"),
        ('{"name": "small", "n": 3}', "{[]: 3}", "CASES must be a literal"),
        ('{"name": "small", "n": 3}', '"small"', "case 0 of CASES is not a dict"),
        ('{"name": "small", "n": 3}', '{"n": [3]}', "case 0 of CASES: params.n"),
        ('{"name": "small", "n": 3}', "{3: 3}", "case 0 of CASES: params.3"),
        ('"name": "small", ', '"name": "case 2", ', "two of CASES have the same name"),
        ("VARY = {", "VARY = 3 #", "VARY"),
        ('(1, 9)}, "contents": ["nominal", "sign"]}', "3}}", "file.py: "),
        ('"n": (1, 9)', '"n": (1,)', "VARY.sizes.n"),
        ('GRADS = ["x"]', "GRADS = 3", "file.py: "),
        ('DONATES = ["y"]', "DONATES = [3]", "DONATES.0"),
        ('PRECISION = "fp32"', 'PRECISION = "int8"', "precision"),
        ("TOLERANCE = 1e-4", "TOLERANCE = 0", "tolerance"),
        ("TOLERANCE = 1e-4", "TOLERANCE = 1e999", "tolerance"),
        ("TOLERANCE = 1e-4", "MODE = ['train']", "mode"),
        ("TOLERANCE = 1e-4", "BUFFERS = 'weight'", "BUFFERS"),
        ("TOLERANCE = 1e-4", "BUFFERS = [3]", "BUFFERS.0"),
        ('ENTRY = "twice"', "ENTRY = 3", "entry"),
        ("CASES = ", "OTHER = ", "CASES must be a list of dicts with at least one case"),
    ],
)
def test_the_error_of_a_problem_file_is_named(old, new, message):
    assert old in FUNCTION

    with pytest.raises(ProblemError, match=r"^file\.py") as caught:
        parse(FUNCTION.replace(old, new))
    assert message in str(caught.value)


@pytest.mark.parametrize("empty", ["[]", "()", "{}", "None", "3"])
def test_a_problem_has_at_least_one_case(empty):
    text = FUNCTION.partition("CASES")[0] + f"CASES = {empty}\ndef inputs(): 0\ndef reference(): 0"

    with pytest.raises(ProblemError, match="CASES"):
        parse(text)


PIECES = st.sampled_from(
    [
        *("CASES", "VARY", "GRADS", " = ", "[", "]", "{", "}", '"n"', ": ", "1", "(", ")", ","),
        *("-", "*", "\n", "None", "def reference(x): x\n", "def inputs(): 0\n", "class Model: 0\n"),
        *('"sizes"', "\ud800", "\0", "1j", "b''", "1e999", "{1}", "...", "lambda: 0", "f'{x}'"),
        "TOLERANCE",
    ]
)


@given(st.lists(PIECES, max_size=30).map("".join))
def test_arbitrary_text_is_read_or_refused(text):
    try:
        problem = parse(f"CASES = [{{'n': 1}}]\n{text}")
    except ProblemError as error:
        assert str(error)  # noqa: PT017 - either outcome is right
        return

    assert problem.cases


def test_deep_nesting_is_refused():
    with pytest.raises(ProblemError):
        parse("CASES = " + "[" * 5000 + "]" * 5000)
    with pytest.raises(ProblemError):
        parse(FUNCTION + "x = " + "-" * 100_000 + "1\n")


def test_files_and_folders_are_found_by_path(tmp_path):
    (tmp_path / "scale.py").write_text(FUNCTION.replace('ENTRY = "twice"', ""))
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "problem.py").write_text(FUNCTION.replace('ENTRY = "twice"', ""))

    assert find_problem(str(tmp_path / "scale.py")).id == "scale"
    assert find_problem(str(tmp_path / "deep")).entry == "deep"
    assert find_problem(str(tmp_path / "deep" / "problem.py")).id == "deep"


def test_bundled_problems_are_found_by_name():
    assert len(bundled_names()) >= 12
    for name in bundled_names():
        problem = find_problem(name)
        assert problem.id == f"bundled/{name}"
        assert find_problem(f"bundled/{name}") == problem
        assert (BUNDLED / name / "candidates").is_dir()


@pytest.mark.parametrize("address", ["nothing", "bundled/nothing", "", "../softmax", "/nowhere"])
def test_an_unknown_address_names_the_command_that_lists_the_problems(address):
    with pytest.raises(ProblemError, match="`tilewright problems list` shows all"):
        find_problem(address)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")

    with pytest.raises(ProblemError, match=r"bytes\.py: not UTF-8 text"):
        find_problem(str(tmp_path / "bytes.py"))
    with pytest.raises(ProblemError, match=r"gone\.py: no such file"):
        read_problem(tmp_path / "gone.py")


def test_problems_are_read_by_many_threads_at_once():
    text = (BUNDLED / "add_relu" / "problem.py").read_text() * 5
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50)

    def many(_: int) -> int:
        trees = 0
        for _ in range(400):
            cycle = _Finalized()
            cycle.itself = cycle
            trees += isinstance(parse_tree(text), ast.Module)
        return trees

    def others() -> None:
        # As a traceback does that a server prints.
        while not over.wait(1e-3):
            with suppress(SystemError):
                ast.parse(text)

    def collected(*_: object) -> None:
        sum(range(50))

    gc.callbacks.append(collected)
    over = threading.Event()
    other = threading.Thread(target=others)
    other.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(many, range(4))) == [400] * 4
    finally:
        over.set()
        other.join()
        gc.callbacks.remove(collected)
        sys.setswitchinterval(interval)
        gc.set_threshold(*threshold)


class _Finalized:
    """Its end runs Python, so that another thread may go on in the middle of a parse."""

    def __del__(self) -> None:
        sum(range(50))


@pytest.mark.parametrize(
    "literal",
    [
        'CASES = [{"name": "\\ud800"}]',
        'CASES = [{"n": "\\ud800"}]',
        f'CASES = [{{"n": 0x{"f" * 5000}}}]',
    ],
    ids=["name", "parameter", "number"],
)
def test_a_literal_that_no_record_can_hold_is_refused(literal):
    text = f"{literal}\ndef inputs(case, generator): ...\ndef reference(x): ...\n"
    with pytest.raises(ProblemError, match=r"p\.py: "):
        parse_problem(text, "p", "p", "p.py")


def test_a_file_name_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / os.fsdecode(b"p\xff.py")
    path.write_text(FUNCTION)
    with pytest.raises(ProblemError, match="not UTF-8; rename it"):
        read_problem(path)


@pytest.mark.parametrize(
    ("literal", "names"),
    [("True", ("*",)), ("False", ()), ('["one", "two.*"]', ("one", "two.*"))],
)
def test_buffers_are_all_or_named(literal, names):
    assert parse(MODULE + f"BUFFERS = {literal}\n").buffers == names


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("mine.py", "mine.py"),
        ("my kernel-2.py", "my kernel-2.py"),
        ("mine.txt", "problem.py"),
        (".py", "problem.py"),
        (f"{'x' * 240}.py", "problem.py"),
        ("a\\b.py", "problem.py"),
    ],
)
def test_the_judge_loads_a_file_by_a_name_that_every_system_can_hold(tmp_path, file, shown):
    path = tmp_path / file
    path.write_text(
        "CASES = [{}]\n\n\ndef inputs(case, generator): ...\n\n\ndef reference(): ...\n"
    )
    assert read_problem(path).source.path == shown
