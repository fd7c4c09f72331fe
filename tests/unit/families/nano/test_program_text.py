"""Every plan of the family nano computes what it claims, by Triton's interpreter."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from tilewright.families.nano import problem_files
from tilewright.families.nano.compositions import COMPOSITIONS, ENTRY, Composition
from tilewright.families.nano.program_slots import (
    FamilyProgram,
    Fault,
    Hack,
    ProgramPlan,
    census,
    is_single_edit,
    space,
)
from tilewright.families.nano.program_text import canonical, render
from tilewright.problems.loader import parse_problem

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
SIZES = {"pointwise": (5, 300), "reduction": (5, 300), "linear": (70, 100)}
INNER = 40
BY_NAME = pytest.mark.parametrize("composition", COMPOSITIONS, ids=lambda item: item.name)


def loaded(text: str, tmp_path: Any) -> dict[str, Any]:
    """Run a program as a file, since Triton reads the source of its kernels."""
    path = tmp_path / f"program{len(list(tmp_path.iterdir()))}.py"
    path.write_text(text)
    names: dict[str, Any] = {"__name__": path.stem}
    import linecache

    linecache.clearcache()
    exec(compile(text, str(path), "exec", dont_inherit=True), names)
    return names


def inputs(composition: Composition, seed: int, scale: float = 1.0) -> tuple[Any, ...]:
    rows, cols = SIZES[composition.kind]
    names: dict[str, Any] = {}
    exec(problem_files.source_of(composition), names)
    case = {"rows": rows, "cols": cols, "inner": INNER}
    made = names["inputs"](case, torch.Generator().manual_seed(seed))
    return tuple(scale * item for item in made)


def expected(composition: Composition, values: tuple[Any, ...]) -> Any:
    names: dict[str, Any] = {}
    exec(problem_files.source_of(composition), names)
    return names["reference"](*values)


def worst_error(program: FamilyProgram, tmp_path: Any, seeds: tuple[int, ...] = (1,)) -> float:
    """Return the largest relative error over some inputs; infinite where a value is not finite."""
    compute, worst = loaded(render(program), tmp_path)[ENTRY], 0.0
    for seed in seeds:
        for scale in (1.0, 100.0):
            values = inputs(program.composition, seed, scale)
            wanted = expected(program.composition, values)
            made = compute(*values)
            if not torch.isfinite(made).all():
                return float("inf")
            difference = (made - wanted).abs() / (wanted.abs() + wanted.abs().mean())
            worst = max(worst, float(difference.max()))
    return worst


@BY_NAME
def test_honest_plans_are_right_and_wrong_ones_are_not(composition, tmp_path):
    for program in census(composition):
        if program.plan in (ProgramPlan.FUSED, ProgramPlan.SPLIT, ProgramPlan.LAZY):
            assert worst_error(program, tmp_path) < 1e-4, program
        elif program.plan is ProgramPlan.WRONG:
            assert worst_error(program, tmp_path) > 1e-3, program


@BY_NAME
def test_broken_programs_stop(composition, tmp_path):
    values = inputs(composition, 1)
    for program in census(composition):
        if program.plan is not ProgramPlan.BROKEN:
            continue
        with pytest.raises(Exception, match=r".*"):
            loaded(render(program), tmp_path)[ENTRY](*values)


@BY_NAME
def test_hacks_are_right_without_work_of_their_own(composition, tmp_path):
    for program in census(composition):
        if program.plan is not ProgramPlan.HACK or program.hack is Hack.COMPILED:
            continue
        error = worst_error(program, tmp_path, seeds=(1, 2))
        # A stale buffer is right on its first call alone.
        assert (error > 1e-3) if program.hack is Hack.STALE else (error < 1e-4), program


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
