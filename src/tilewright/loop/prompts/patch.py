"""The same as `evolve`, but the answer changes the current program by SEARCH/REPLACE blocks."""

from __future__ import annotations

from tilewright.loop.policies.base import Message
from tilewright.loop.prompts import evolve
from tilewright.loop.prompts.material import Material

REQUEST = """Change the current program by one or more blocks of this form, and nothing else:

<<<<<<< SEARCH
lines of the current program, exactly as they stand
=======
the lines that replace them
>>>>>>> REPLACE

Each block must match whole lines of the program. This replaces the rule about one fenced block."""


def messages(material: Material) -> tuple[Message, ...]:
    """Return one message that asks for SEARCH/REPLACE blocks on the first parent.

    Without a parent there is nothing to change, and it asks for a whole program.
    """
    if not material.parents:
        return evolve.messages(material)
    return (Message(role="user", text=evolve.text(material, REQUEST)),)
