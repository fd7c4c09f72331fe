"""The current program, what is known about it, and other programs (as OpenEvolve's prompts do)."""

from __future__ import annotations

from tilewright.loop.policies.base import Message
from tilewright.loop.prompts.material import Material
from tilewright.loop.prompts.opening import AGAIN, opening
from tilewright.loop.prompts.shown_programs import notes, program, worst_first

MAX_FAILED = 3
"""Failed attempts that a prompt names: the newest ones."""


def text(material: Material, request: str) -> str:
    """Return the whole message, with a request at its end."""
    parts = [opening(material.problem, material.language), notes(material.documents)]
    own = {turn.ask.id for turn in material.parents}
    others = [turn for turn in material.shown if turn.ask.id not in own]
    if others:
        parts.append("# Other programs, slowest first")
        parts += [program(turn, material.estimate(turn)) for turn in worst_first(material, others)]
    for turn in material.parents[:1]:
        parts += ["# The current program", program(turn, material.estimate(turn)), turn.feedback]
    if material.failed:
        parts.append("# Attempts to improve it that failed")
        parts.append("\n".join(f"- {reason}" for reason in material.failed[-MAX_FAILED:]))
    parts += [request, material.instruction]
    return "\n\n".join(filter(None, parts))


def messages(material: Material) -> tuple[Message, ...]:
    """Return one message that asks for a whole program."""
    request = AGAIN if material.parents else ""
    return (Message(role="user", text=text(material, request)),)
