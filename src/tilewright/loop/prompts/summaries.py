"""Trajectories from which a summary is written (the summariser of POLCA, arXiv 2603.14769)."""

from __future__ import annotations

from tilewright.loop.policies.base import Message
from tilewright.loop.prompts.material import Material
from tilewright.loop.prompts.shown_programs import program

REQUEST = """Say what these attempts teach: which changes made programs faster, which broke them, \
and what was not tried yet. Answer in XML, with your thoughts in <reasoning> and a text that \
replaces the summary so far in <summary>."""


def messages(material: Material) -> tuple[Message, ...]:
    """Return one message: the problem, the attempts, and the request for a summary.

    The instruction holds the summary so far.
    """
    source = material.problem.source.text.strip()
    parts = [f"Programs are written for this computation:\n\n```python\n{source}\n```"]
    for number, turn in enumerate(material.shown, start=1):
        parts.append(f"# Attempt {number}\n\n{program(turn, material.estimate(turn))}")
        parts.append(turn.feedback)
    if material.instruction:
        parts.append(f"# The summary so far\n\n{material.instruction}")
    parts.append(REQUEST)
    return (Message(role="user", text="\n\n".join(filter(None, parts))),)
