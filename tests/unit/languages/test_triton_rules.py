"""Which programs are Triton: a truth table, the bundled candidates, and properties of the rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright
from tests.triton_snippets import HONEST, SNIPPETS
from tilewright.languages.triton_rules import is_triton

BUNDLED = Path(tilewright.__file__).parent / "problems" / "bundled"
CANDIDATES = sorted(BUNDLED.glob("*/candidates/*.py"))


@pytest.mark.parametrize("case", SNIPPETS, ids=lambda case: case.name)
def test_each_rule_gives_the_answer_of_the_table(case):
    assert is_triton(case.code, "paper_minimal") is case.minimal
    assert is_triton(case.code, "strict") is case.strict


def test_the_table_is_large_and_has_both_answers():
    assert len({case.code for case in SNIPPETS}) == len(SNIPPETS) >= 40
    for rule in ("minimal", "strict"):
        answers = [getattr(case, rule) for case in SNIPPETS]
        assert min(answers.count(True), answers.count(False)) >= 5


@pytest.mark.parametrize("path", CANDIDATES, ids=lambda path: f"{path.parts[-3]}/{path.name}")
def test_of_the_bundled_candidates_those_in_triton_are_triton(path):
    code = path.read_text(encoding="utf-8")
    for rule in ("paper_minimal", "strict"):
        assert is_triton(code, rule) is path.name.startswith("triton_")


def test_an_entry_that_is_named_is_the_only_one_that_counts():
    code = HONEST + "def other(x):\n    return torch.exp(x)\n"
    assert not is_triton(code, "strict")
    assert is_triton(code, "strict", "f")
    assert not is_triton(code, "strict", "other")


@given(st.lists(st.sampled_from(HONEST.splitlines()), max_size=20))
def test_a_program_that_satisfies_the_strict_rule_satisfies_the_other_one(lines):
    code = "\n".join(lines)
    assert is_triton(code, "paper_minimal") or not is_triton(code, "strict")
