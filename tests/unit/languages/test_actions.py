"""Legal actions of twenty programs equal those of a person, and region names survive edits."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.action_programs import HEAD, PROGRAMS, RELU, SOFTMAX
from tilewright.languages.actions import (
    ActionSource,
    action_of,
    native_actions,
    python_actions,
    whole_program,
)
from tilewright.languages.built_in import BUILT_IN

BY_NAME = {language.name: language for language in BUILT_IN}


def texts(actions):
    return [action.text for action in actions]


@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case.name)
def test_the_legal_actions_are_those_that_a_person_lists(case):
    assert tuple(texts(BY_NAME[case.language].actions(case.code))) == case.actions


def test_there_are_twenty_programs():
    assert len(PROGRAMS) == 20


@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case.name)
def test_each_sentence_means_one_type_and_region(case):
    actions = BY_NAME[case.language].actions(case.code)
    assert len(set(texts(actions))) == len(actions)
    for action in actions:
        assert action_of(action.text, actions) == action
        assert len(action.region) == (2 if action.type == "fuse" else 1)
    assert action_of("stop", actions) is None


@pytest.mark.parametrize("language", BUILT_IN, ids=lambda language: language.name)
def test_every_built_in_language_finds_actions(language):
    assert isinstance(language, ActionSource)
    assert language.actions("this is no program (") == ()


CHAIN = (
    HEAD
    + RELU
    + SOFTMAX
    + """
def f(x, w):
    h = torch.matmul(x, w)
    y = torch.empty_like(h)
    relu_kernel[(1,)](h, y, h.numel(), BLOCK=64)
    z = torch.empty_like(y)
    _softmax_kernel[(1,)](y, z, y.shape[1], BLOCK=64)
    return z
"""
)
EDITS = {
    "a kernel is rewritten": ("tl.maximum(x, 0.0)", "tl.where(x > 0, x, 0.0)"),
    "a tile is changed": ("BLOCK=64", "BLOCK=512, num_warps=8"),
    "lines are added": ("def f(x, w):\n", "def f(x, w):\n    # a comment\n    n = x.shape[0]\n\n"),
    "a parameter is renamed": ("y_ptr", "destination_ptr"),
    "a variable is renamed": (
        "    h = torch.matmul(x, w)\n",
        "    g = torch.matmul(x, w); h = g\n",
    ),
    "an earlier region appears": ("torch.matmul(x, w)", "torch.matmul(torch.exp(x), w)"),
    "a later region appears": ("    return z", "    return torch.tanh(z)"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_the_names_of_other_regions_survive_an_edit(edit):
    before, after = python_actions(CHAIN), python_actions(CHAIN.replace(*edit))
    assert len(before) == 6
    assert CHAIN.replace(*edit) != CHAIN
    assert set(texts(before)) <= set(texts(after))


def test_a_fusion_removes_the_regions_that_it_joins():
    fused = CHAIN.replace("    h = torch.matmul(x, w)\n", "    h = x\n")
    gone = set(texts(python_actions(CHAIN))) - set(texts(python_actions(fused)))
    assert gone == {"fuse the matmul with the relu kernel"}


def test_kernels_of_one_short_name_keep_their_whole_names():
    code = (
        HEAD
        + RELU
        + RELU.replace("relu_kernel", "_relu_kernel")
        + (
            "def f(x):\n    y = torch.empty_like(x)\n    relu_kernel[(1,)](x, y, 1, BLOCK=64)\n"
            "    _relu_kernel[(1,)](y, y, 1, BLOCK=64)\n    return y\n"
        )
    )
    assert "fuse the relu_kernel kernel with the _relu_kernel kernel" in texts(python_actions(code))


def test_a_program_of_unknown_regions_may_be_changed_as_a_whole():
    assert texts(whole_program()) == [
        "retile the program",
        "reorder the program",
        "apply pipelining to the program",
    ]


def test_a_hostile_file_has_no_regions_and_takes_no_time():
    deep = HEAD + "def f(x):\n    return " + "torch.exp(" * 150 + "x" + ")" * 150 + "\n"
    assert python_actions(deep) == ()
    calls = "".join(f"def f{n}(x):\n    f{n + 1}(x)\n    return f{n + 1}(x)\n" for n in range(40))
    assert python_actions(HEAD + calls + "def f40(x):\n    return torch.exp(x)\n") == ()
    assert native_actions("for (" * 10_000) == ()
    assert native_actions("f(" + "a " * 50_000) == ()


@given(st.text(alphabet='f(x){}[];= \nforwhile<>*,"/', max_size=300))
def test_no_text_breaks_the_reader_of_loops(text):
    for action in native_actions(text):
        assert action.region


@given(st.lists(st.sampled_from(ast.unparse(ast.parse(CHAIN)).splitlines()), max_size=30))
def test_no_order_of_lines_breaks_the_reader_of_python(lines):
    names = {name for action in python_actions("\n".join(lines)) for name in action.region}
    assert all(names)
