"""Forms of prompts: each is a pure function from the material of a request to messages."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.loop.policies.base import Message
from tilewright.loop.prompts import action, conversation, evolve, exemplars, patch, summaries
from tilewright.loop.prompts.material import Material
from tilewright.records.events import Form

FORMS: dict[Form, Callable[[Material], tuple[Message, ...]]] = {
    "conversation": conversation.messages,
    "exemplars": exemplars.messages,
    "evolve": evolve.messages,
    "action": action.messages,
    "summary": summaries.messages,
    "patch": patch.messages,
}


def messages_of(material: Material) -> tuple[Message, ...]:
    """Return the messages of a prompt in the form of its request."""
    return FORMS[material.form](material)
