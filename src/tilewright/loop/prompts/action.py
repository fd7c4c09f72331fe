"""One change to one program: the form of MTMC's micro-coder (QiMeng-Kernel, arXiv 2511.20100)."""

from __future__ import annotations

from tilewright.loop.policies.base import Message
from tilewright.loop.prompts.material import Material
from tilewright.loop.prompts.opening import opening
from tilewright.loop.prompts.shown_programs import notes, program

REQUEST = "Make this one change and no other. Reply with the whole file, in one fenced code block."


def messages(material: Material) -> tuple[Message, ...]:
    """Return one message: the program, the action, and examples of its type.

    The instruction is the action, or asks for the next one. The documents hold the examples.
    """
    parts = [opening(material.problem, material.language), notes(material.documents)]
    for turn in material.parents[:1]:
        parts += ["# The current program", program(turn, material.estimate(turn))]
    if material.shown:
        parts.append("# The last changes and what they led to")
        for turn in material.shown:
            parts.append(f"- {turn.ask.instruction}: {turn.feedback.strip()}")
    if material.is_choice:
        parts.append(f"# The next step\n\n{material.instruction}")
    elif material.instruction:
        parts.append(f"# The change\n\n{material.instruction}")
        parts.append(REQUEST)
    return (Message(role="user", text="\n\n".join(filter(None, parts))),)
