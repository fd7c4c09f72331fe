"""Error reports of a runner are bounded and readable, and the runner continues."""

from __future__ import annotations

import traceback
from typing import NoReturn

import pytest
import torch

from tests.runner_role import RunnerRole
from tests.unit.runner.test_main import DOUBLE, said

pytestmark = pytest.mark.usefixtures("runner_folder")


def test_an_exception_of_the_candidate_is_an_error_report(runner):
    source = "def work(x):\n    return deeper(x)\ndef deeper(x):\n    raise KeyError('lost')\n"
    runner.load({"candidate.py": source})
    error = said(runner.call(torch.ones(1)))

    assert (error.during, error.type, error.message) == ("call", "KeyError", "'lost'")
    assert error.traceback == [
        "candidate.py:2 in work: return deeper(x)",
        "candidate.py:4 in deeper: raise KeyError('lost')",
    ]
    runner.load({"candidate.py": DOUBLE})
    assert runner.call(torch.ones(1)).kind == "result"


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("raise SystemExit(3)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("import nothing_of_this_name", "ModuleNotFoundError"),
        ("def broken(:", "SyntaxError"),
        ("def f(): f()\nf()", "RecursionError"),
    ],
)
def test_any_exception_while_loading_is_an_error_report(runner, statement, kind):
    assert said(runner.load({"candidate.py": statement})).type == kind
    assert runner.load({"candidate.py": DOUBLE}).kind == "loaded"


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("raise NotImplementedError", "NotImplementedError"),
        ("import torch\nraise torch.OutOfMemoryError('x')", "RuntimeError"),
        ("class Mine(ValueError, KeyError): pass\nraise Mine", "ValueError"),
        (
            "class Meta(type):\n    __mro__ = property(lambda self: 1 / 0)\n"
            "class Mine(Exception, metaclass=Meta): pass\nraise Mine",
            "",
        ),
    ],
)
def test_the_nearest_built_in_class_of_an_exception_is_named(runner, statement, name):
    assert said(runner.load({"candidate.py": statement})).builtin == name


def test_a_missing_module_is_named(runner):
    assert said(runner.load({"candidate.py": "import one.two"})).missing == "one"
    own = "class Mine(ModuleNotFoundError): pass\nraise Mine('x', name='one')"
    assert said(runner.load({"candidate.py": own})).missing == ""


def test_an_error_without_a_printable_message_is_an_error_report(runner):
    source = (
        "class Rude(Exception):\n    def __str__(self):\n        raise SystemExit\n"
        "Rude.__name__ = 'R' * 5000\n"
        "def work(x):\n    raise Rude\n"
    )
    runner.load({"candidate.py": source})
    error = said(runner.call(torch.ones(1)))

    assert error.message == "(its message cannot be shown)"
    assert error.type == "R" * 200


def test_long_messages_are_cut(runner):
    source = "def work(x, n=0):\n    return work(x, n + 1) if n < 40 else boom('y' * 90000)\n"
    source += "def boom(text):\n    raise ValueError(text)\n"
    runner.load({"candidate.py": source})
    error = said(runner.call(torch.ones(1)))

    assert len(error.message) == 4000
    assert len(error.traceback) == 12


def test_messages_of_any_characters_fit_a_frame(runner):
    line = "    raise ValueError('\U0001f600' * 4000)  # " + "\U0001f600" * 300
    nested = "".join(f"def f{n}(x):\n    return f{n + 1}(x)  #{line[-300:]}\n" for n in range(12))
    runner.load({"candidate.py": f"{nested}def f12(x):\n{line}\nwork = f0\n"})

    assert said(runner.call(torch.ones(1))).type == "ValueError"


def test_a_patched_traceback_module_does_not_hide_an_error(runner, monkeypatch):
    def refuse(*_: object) -> NoReturn:
        raise RuntimeError

    runner.load({"candidate.py": "def work(x):\n    raise KeyError(1)\n"})
    monkeypatch.setattr(traceback, "extract_tb", refuse)
    error = said(runner.call(torch.ones(1)))

    assert (error.type, error.traceback) == ("KeyError", [])


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        ("call", "nothing is loaded"),
        ("weights", "no input arena is mapped"),
        ("read_weights", "nothing is loaded"),
    ],
)
def test_a_request_before_its_precondition_is_an_error(kind, missing):
    bare = RunnerRole(mapped=kind not in ("weights",))
    fields = bare.fields(torch.ones(1), tree={}, names=[], sequence=1, wait_s=0.1, held=[])
    error = said(bare.role.ask(kind, fields))
    bare.close()

    assert missing in error.message


def test_calls_without_memory_are_an_error():
    bare = RunnerRole(mapped=False)
    bare.load({"candidate.py": DOUBLE})
    errors = [
        said(bare.role.ask(kind, bare.fields(torch.ones(1), sequence=1, wait_s=0.1, held=[])))
        for kind in ("call", "arm")
    ]
    bare.close()

    assert [error.type for error in errors] == ["RuntimeError"] * 2


def test_a_timed_call_before_the_sync_page_is_an_error():
    bare = RunnerRole(mapped=False)
    assert bare.role.ask("map", {"inputs": 4096}).kind == "mapped"
    bare.load({"candidate.py": DOUBLE})
    error = said(bare.role.ask("arm", bare.fields(torch.ones(1), sequence=1, wait_s=0.1, held=[])))
    bare.close()

    assert error.message == "no sync page is mapped"
