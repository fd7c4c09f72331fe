"""A conversation: the opening, then each shown answer with the feedback about it."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.languages.reply_parser import spoken
from tilewright.loop.policies.base import Message
from tilewright.loop.prompts.material import Material
from tilewright.loop.prompts.opening import AGAIN, opening
from tilewright.loop.prompts.shown_programs import TAGS, fenced, notes
from tilewright.records import Problem
from tilewright.records.events import Turn


def messages(material: Material) -> tuple[Message, ...]:
    """Return the opening, then each shown turn and its feedback.

    The last message asks for an answer, and the instruction is added to it. `Ask.prompt_override`
    holds the words of others, of the shown turns and of this one. It replaces our words.
    """
    made, ours = list[Message](), opening(material.problem, material.language)
    ours = "\n\n".join(filter(None, (ours, notes(material.documents))))
    for turn in material.shown:
        # Reasoning is not repeated: it is long, and the code holds its result. A measured program
        # has no reply of its own.
        said = spoken(turn.reply.text).strip() if turn.reply is not None else ""
        said = said or (fenced(turn.code, TAGS.get(turn.language, "python")) if turn.code else "")
        if turn.reply is None and not said:
            continue
        made.append(Message(role="user", text=turn.ask.prompt_override or ours))
        made.append(Message(role="assistant", text=said))
        ours = f"{turn.feedback}\n\n{AGAIN}"
    last = "\n\n".join(filter(None, (material.override or ours, material.instruction)))
    return (*made, Message(role="user", text=last))


def conversation(
    problem: Problem,
    language: str | None,
    shown: Sequence[Turn],
    instruction: str = "",
    override: str = "",
) -> tuple[Message, ...]:
    """Return the messages of a prompt that shows turns and nothing else."""
    return messages(
        Material(problem, language, shown=shown, instruction=instruction, override=override)
    )
