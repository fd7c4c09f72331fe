"""Scored programs to compare, slowest first (CUDA-L1, arXiv 2507.14111, section on prompts)."""

from __future__ import annotations

from tilewright.loop.policies.base import Message
from tilewright.loop.prompts.material import Material
from tilewright.loop.prompts.opening import opening
from tilewright.loop.prompts.shown_programs import notes, program, worst_first

REQUEST = """Answer in three parts:
1. Performance analysis: why is each program above as fast as it is? What does the faster one do \
that the slower one does not?
2. Algorithm design: which changes follow from that?
3. Code: the whole file, in one fenced code block."""


def messages(material: Material) -> tuple[Message, ...]:
    """Return one message: the opening, the shown programs with their speed, and the request."""
    shown = worst_first(material, material.shown)
    programs = [
        f"Program {number}. {program(turn, material.estimate(turn))}"
        for number, turn in enumerate(shown, start=1)
    ]
    heading = "Earlier programs for this computation, slowest first:" if programs else ""
    parts = (
        opening(material.problem, material.language),
        notes(material.documents),
        heading,
        *programs,
        REQUEST if programs else "",
        material.instruction,
    )
    return (Message(role="user", text="\n\n".join(filter(None, parts))),)
