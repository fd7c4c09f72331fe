"""Moves one random knob of the parent by one notch: `--model scripted:.../blind.py`."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tilewright.spaces.prompt_reading import PromptMessage
from tilewright.spaces.proposing import Behaviour, blind, respond

BEHAVIOUR = Behaviour(blind)


def propose(messages: Sequence[PromptMessage], draw: random.Random) -> str:
    """Return the reply to a prompt; `draw` belongs to the request."""
    return respond(messages, BEHAVIOUR, draw)
