"""Each sentence names one single edit, and every program of the family has distinct sentences."""

import pytest

from tilewright.families.nano.compositions import COMPOSITIONS
from tilewright.families.nano.program_slots import (
    FamilyProgram,
    Fault,
    ProgramPlan,
    is_single_edit,
    space,
)
from tilewright.families.nano.single_edits import HONEST, broken_edits, single_edits


@pytest.mark.parametrize("composition", COMPOSITIONS, ids=lambda item: item.name)
def test_every_sentence_means_one_single_edit_to_a_program_of_the_space(composition):
    programs = set(space(composition))
    for program in programs:
        edits = single_edits(program)
        sentences = [edit.sentence for edit in edits]
        assert len(set(sentences)) == len(sentences)
        assert len({edit.program for edit in edits}) == len(edits)
        for edit in edits:
            assert edit.program in programs
            assert is_single_edit(program, edit.program)
            assert set(broken_edits(edit.program)) <= programs
        assert bool(edits) == (program.plan in HONEST)


def test_the_edits_of_a_split_program_by_hand():
    program = FamilyProgram("nano/scale_silu_bias", ProgramPlan.SPLIT, 1024, 4, cut=1)
    assert {edit.sentence: edit.type for edit in single_edits(program)} == {
        "fuse the scale with the silu": "fuse",
        "split before the bias": "split",
        "retile to blocks of 512": "retile",
        "retile to blocks of 2048": "retile",
        "use 2 warps": "warps",
        "use 8 warps": "warps",
        "use 16 warps": "warps",
    }


def test_a_reordering_of_operators_that_do_not_commute_gives_a_wrong_program():
    program = FamilyProgram("nano/scale_silu_bias", ProgramPlan.FUSED, 1024, 4)
    found = {edit.sentence: edit.program for edit in single_edits(program)}
    wrong = found["reorder the scale and the silu"]
    assert (wrong.plan, wrong.fault) == (ProgramPlan.WRONG, Fault.ORDER)
