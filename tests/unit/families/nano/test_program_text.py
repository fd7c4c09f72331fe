"""Every plan of the family nano computes what it claims, by Triton's interpreter."""

from __future__ import annotations

import ast

import pytest

from tests.family_programs import outcomes
from tilewright.families.nano import problem_files
from tilewright.families.nano.compositions import COMPOSITIONS, ENTRY
from tilewright.families.nano.program_slots import (
    Fault,
    Hack,
    ProgramPlan,
    census,
    is_single_edit,
    space,
)
from tilewright.families.nano.program_text import canonical, render
from tilewright.problems.loader import parse_problem

BY_NAME = pytest.mark.parametrize("composition", COMPOSITIONS, ids=lambda item: item.name)


@BY_NAME
def test_every_plan_computes_what_it_claims(composition):
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    programs = list(census(composition))
    for program, error in zip(programs, outcomes(composition.id), strict=True):
        if program.plan is ProgramPlan.BROKEN:
            assert error is None, program
        elif program.hack is not Hack.COMPILED:
            # A stale buffer is right on its first call alone.
            wrong = program.plan is ProgramPlan.WRONG or program.hack is Hack.STALE
            assert error is not None, program
            assert error > 1e-3 if wrong else error < 1e-4, (program, error)
    assert {program.plan for program in programs} == set(ProgramPlan)


@BY_NAME
def test_texts_are_canonical_and_differ(composition):
    texts = {}
    for program in space(composition):
        text = render(program)
        assert text not in texts, (program, texts[text])
        texts[text] = program
        assert canonical(text) == text
        assert "#" not in text
        if program.fault is not Fault.SYNTAX:
            ast.parse(text)
    assert all(program in set(space(composition)) for program in census(composition))


@BY_NAME
def test_single_edits_connect_all_programs_of_a_problem(composition):
    programs = list(space(composition))
    reached, waiting = {programs[0]}, [programs[0]]
    while waiting:
        here = waiting.pop()
        for other in programs:
            if other not in reached and is_single_edit(here, other):
                reached.add(other)
                waiting.append(other)
    assert len(reached) == len(programs)


def test_the_census_has_every_plan_of_every_problem():
    listed = [list(census(item)) for item in COMPOSITIONS]
    assert sum(map(len, listed)) >= 430
    for programs in listed:
        assert {item.plan for item in programs} == set(ProgramPlan)
        assert {item.hack for item in programs} == {None, *Hack}


def test_no_held_out_composition_is_one_for_training():
    train = {item.operators for item in problem_files.compositions_of("train")}
    held_out = {item.operators for item in problem_files.compositions_of("held_out")}
    assert (len(train), len(held_out)) == (8, 4)
    assert not train & held_out


@BY_NAME
def test_the_text_of_a_problem_is_a_problem(composition):
    made = parse_problem(
        problem_files.source_of(composition), composition.id, composition.name, "x", "x.py"
    )
    assert made.entry == ENTRY
    assert [case.name for case in made.cases] == ["odd", "large"]


def test_text_without_a_tree_keeps_its_lines():
    assert canonical("def f(:  \n\n  x\n") == "def f(:\n  x\n"
    assert canonical("x=1  # why\n") == "x = 1\n"


def test_an_unknown_group_is_an_error():
    with pytest.raises(KeyError):
        problem_files.compositions_of("nothing")
