"""Programs of a family as rows of a data set: code, plan, slots, and a conversation of one turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

from tilewright.families.nano.compositions import Composition
from tilewright.families.nano.problem_files import compositions_of, reference_of
from tilewright.families.nano.program_slots import FamilyProgram, census, space
from tilewright.families.nano.program_text import render

SHAPE: dict[str, Any] = {
    "id": "string",
    "problem": "string",
    "held_out": "bool",
    "plan": "string",
    "slots": {
        **dict.fromkeys(("problem", "plan", "fault", "hack"), "string"),
        **dict.fromkeys(("block", "warps", "cut", "own"), "int64"),
    },
    "code": "string",
    "messages": [{"role": "string", "content": "string"}],
}
"""The columns of a row, by types of arrow."""
Extent = Literal["census", "space"]
Listed = Callable[[Composition], Iterator[FamilyProgram]]
EXTENTS: dict[Extent, Listed] = {"census": census, "space": space}
"""The programs of a problem: those that are judged first, or all of them."""


def question(composition: Composition) -> str:
    """Return the prompt that asks for a program: the reference alone."""
    return reference_of(composition)


def family_rows(group: str, extent: Extent) -> Iterator[dict[str, Any]]:
    """Yield a row for each program of a group of problems.

    Raises:
        KeyError: the family has no such group and no such problem.
    """
    listed = EXTENTS[extent]
    for composition in compositions_of(group):
        asked = question(composition)
        for number, program in enumerate(listed(composition)):
            code = render(program)
            yield {
                "id": f"{composition.id}#{number}",
                "problem": composition.id,
                "held_out": composition.held_out,
                "plan": program.plan.value,
                "slots": program.slots(),
                "code": code,
                "messages": [
                    {"role": "user", "content": asked},
                    {"role": "assistant", "content": f"```python\n{code}```"},
                ],
            }
