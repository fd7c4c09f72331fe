"""Copies a knob in which a faster program differs from a slower one: `scripted:.../reader.py`."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tilewright.spaces.prompt_reading import PromptMessage
from tilewright.spaces.proposing import Behaviour, reader, respond

BEHAVIOUR = Behaviour(reader)


def propose(messages: Sequence[PromptMessage], draw: random.Random) -> str:
    """Return the reply to a prompt; `draw` belongs to the request."""
    return respond(messages, BEHAVIOUR, draw)
