"""Sentences for single edits of a program of the family, as MTMC's decider chooses among them.

The types are those of MTMC (QiMeng-Kernel, arXiv 2511.20100, section on actions), in the words of
this family: fuse, split, retile, warps and reorder. Each sentence names one program. A reordering
of operators that do not commute is legal as well, and its program is wrong: only the verdict shows
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from tilewright.families.nano.compositions import swapped_pair
from tilewright.families.nano.program_slots import (
    BLOCKS,
    BROKEN,
    WARPS,
    FamilyProgram,
    Fault,
    ProgramPlan,
    cuts,
    own_places,
)

EditType = Literal["fuse", "split", "retile", "warps", "reorder"]
HONEST = (ProgramPlan.FUSED, ProgramPlan.SPLIT, ProgramPlan.LAZY)
"""Plans of correct programs; only these are edited."""


@dataclass(frozen=True)
class FamilyEdit:
    """One edit as a sentence, and the program that it gives."""

    type: EditType
    sentence: str
    program: FamilyProgram


def single_edits(program: FamilyProgram) -> tuple[FamilyEdit, ...]:
    """Return the legal edits of an honest program, by type; others have none."""
    if program.plan not in HONEST:
        return ()
    return tuple(
        FamilyEdit(kind, sentence, made)
        for kind, sentence, made in (*_plans(program), *_sizes(program))
    )


Found = Iterator[tuple[EditType, str, FamilyProgram]]


def _plans(program: FamilyProgram) -> Found:
    composition, plan = program.composition, program.plan
    names = [item.name for item in composition.operators]
    fused = replace(program, plan=ProgramPlan.FUSED, cut=0, own=0)
    if plan is ProgramPlan.SPLIT:
        yield "fuse", f"fuse the {names[program.cut - 1]} with the {names[program.cut]}", fused
    if plan is ProgramPlan.LAZY:
        yield "fuse", "fuse all operators", fused
        for own in own_places(composition):
            if own != program.own:
                yield "split", f"write the {names[own]} instead", replace(program, own=own)
    for cut in cuts(composition):
        if plan is not ProgramPlan.SPLIT or cut != program.cut:
            made = replace(fused, plan=ProgramPlan.SPLIT, cut=cut)
            yield "split", f"split before the {names[cut]}", made
    place = swapped_pair(composition)
    if plan is ProgramPlan.FUSED and place is not None:
        made = replace(program, plan=ProgramPlan.WRONG, fault=Fault.ORDER)
        yield "reorder", f"reorder the {names[place]} and the {names[place + 1]}", made


def _sizes(program: FamilyProgram) -> Found:
    for block in BLOCKS[program.composition.kind]:
        if block != program.block:
            yield "retile", f"retile to blocks of {block}", replace(program, block=block)
    for warps in WARPS:
        if warps != program.warps:
            yield "warps", f"use {warps} warps", replace(program, warps=warps)


def broken_edits(program: FamilyProgram) -> tuple[FamilyProgram, ...]:
    """Return the programs that an edit towards a program may end in if it fails."""
    base = replace(program, plan=ProgramPlan.BROKEN, cut=0, own=0)
    return tuple(replace(base, fault=fault) for fault in BROKEN)
