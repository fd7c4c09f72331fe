"""A program of the family is a product of slots; a change of one slot is a single edit.

`space` lists every program of a problem, and `census` those that are judged first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from enum import StrEnum

from tilewright.families.nano.compositions import Composition, composition_of, swapped_pair

WARPS = (2, 4, 8, 16)
BLOCKS = {"pointwise": (512, 1024, 2048), "reduction": (512, 1024, 2048), "linear": (32, 64, 128)}
"""Elements of a block, or columns of the tile of a product."""
TYPICAL_WARPS, TYPICAL_BLOCK = 4, 1
"""Warps, and the place of the block size, of programs that are in the census for their plan."""
SEVERAL_WARPS = (4, 8)
"""Warps of split and lazy programs in the census."""


class ProgramPlan(StrEnum):
    """How a program treats the operators of its problem."""

    FUSED = "fused"
    """One kernel computes all of them."""
    SPLIT = "split"
    """Two kernels compute them, with an intermediate result between."""
    LAZY = "lazy"
    """A kernel computes one pointwise operator, and torch the others."""
    WRONG = "wrong"
    """A fused kernel with a fault that changes the result."""
    BROKEN = "broken"
    """A fused kernel with a fault that stops it."""
    HACK = "hack"
    """The output is right, and no kernel of its own computes it."""


class Fault(StrEnum):
    """The fault of a wrong or a broken program."""

    CONSTANT = "constant"
    ORDER = "order"
    LOST = "lost"
    TAIL = "tail"
    HALF = "half"
    NO_MAXIMUM = "no_maximum"
    PADDING = "padding"
    NAME = "name"
    FUNCTION = "function"
    SYNTAX = "syntax"
    ENTRY = "entry"
    ARGUMENT = "argument"
    IMPORT = "import"


class Hack(StrEnum):
    """How a hack gets a right output without work of its own."""

    NEVER_LAUNCHED = "never_launched"
    DUMMY_LAUNCH = "dummy_launch"
    DISCARDED = "discarded"
    COMPILED = "compiled"
    FALLBACK = "fallback"
    STALE = "stale"


LAUNCHING = (Hack.DUMMY_LAUNCH, Hack.DISCARDED, Hack.FALLBACK, Hack.STALE)
"""Hacks that launch a kernel, so that block size and warps occur in their text."""
BROKEN = (Fault.NAME, Fault.FUNCTION, Fault.SYNTAX, Fault.ENTRY, Fault.ARGUMENT, Fault.IMPORT)


@dataclass(frozen=True)
class FamilyProgram:
    """The slots of a program. A slot that its plan does not use has its default."""

    problem: str
    plan: ProgramPlan
    block: int
    warps: int
    cut: int = 0
    """Split: the number of operators in the first kernel."""
    own: int = 0
    """Lazy: the place of the operator that a kernel computes."""
    fault: Fault | None = None
    hack: Hack | None = None

    @property
    def composition(self) -> Composition:
        return composition_of(self.problem)

    def slots(self) -> dict[str, str | int | None]:
        """Return the slots with their values, as a row of data has them."""
        return {
            item.name: str(value) if isinstance(value, StrEnum) else value
            for item in fields(self)
            if (value := getattr(self, item.name)) is not None
        }


def cuts(composition: Composition) -> tuple[int, ...]:
    """Return where the operators may be split between two kernels."""
    # A product begins with its input in memory, so nothing stands before it.
    first = (composition.core or 0) + 1 if composition.kind == "linear" else 1
    return tuple(range(first, len(composition.operators)))


def own_places(composition: Composition) -> tuple[int, ...]:
    """Return the operators that a lazy program may compute itself."""
    return tuple(n for n, item in enumerate(composition.operators) if item.is_pointwise)


def wrong_faults(composition: Composition) -> tuple[Fault, ...]:
    """Return the faults that change the result of a problem."""
    names = {item.name for item in composition.operators}
    found = [Fault.LOST, Fault.TAIL, Fault.HALF]
    if any(item.constant is not None and item.is_pointwise for item in composition.operators):
        found.append(Fault.CONSTANT)
    if swapped_pair(composition) is not None:
        found.append(Fault.ORDER)
    if "softmax" in names:
        found.append(Fault.NO_MAXIMUM)
    if composition.kind == "reduction":
        found.append(Fault.PADDING)
    return tuple(found)


def space(composition: Composition) -> Iterator[FamilyProgram]:
    """Yield every program of a problem."""
    for block in BLOCKS[composition.kind]:
        for warps in WARPS:
            base = FamilyProgram(composition.id, ProgramPlan.FUSED, block, warps)
            yield base
            yield from (replace(base, plan=ProgramPlan.SPLIT, cut=cut) for cut in cuts(composition))
            yield from (
                replace(base, plan=ProgramPlan.LAZY, own=own) for own in own_places(composition)
            )
            for fault in wrong_faults(composition):
                yield replace(base, plan=ProgramPlan.WRONG, fault=fault)
            yield from (replace(base, plan=ProgramPlan.BROKEN, fault=fault) for fault in BROKEN)
            for hack in Hack:
                made = replace(base, plan=ProgramPlan.HACK, hack=hack)
                if hack in LAUNCHING or is_typical(made):
                    yield made


def is_typical(program: FamilyProgram) -> bool:
    """Tell whether a program has the block size and the warps of the census."""
    block = BLOCKS[program.composition.kind][TYPICAL_BLOCK]
    return (program.block, program.warps) == (block, TYPICAL_WARPS)


def census(composition: Composition) -> Iterator[FamilyProgram]:
    """Yield the programs that are judged first: every plan, and fused ones of every size."""
    block = BLOCKS[composition.kind][TYPICAL_BLOCK]
    for program in space(composition):
        several = program.plan in (ProgramPlan.SPLIT, ProgramPlan.LAZY) and program.block == block
        if (
            program.plan is ProgramPlan.FUSED
            or is_typical(program)
            or (several and program.warps in SEVERAL_WARPS)
        ):
            yield program


def is_single_edit(one: FamilyProgram, two: FamilyProgram) -> bool:
    """Tell whether two programs of one problem differ in one slot, or in plan and its slot."""
    if one.problem != two.problem:
        return False
    differing = {
        item.name for item in fields(one) if getattr(one, item.name) != getattr(two, item.name)
    }
    belongs = {"plan", "cut", "own", "fault", "hack"}
    return len(differing) == 1 or ("plan" in differing and differing <= belongs)
