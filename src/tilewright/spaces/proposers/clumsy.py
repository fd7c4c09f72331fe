"""Makes several changes at once and spoils some programs: `scripted:.../clumsy.py`."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tilewright.spaces.prompt_reading import PromptMessage
from tilewright.spaces.proposing import SURE, Behaviour, respond, several

BEHAVIOUR = Behaviour(several, SURE)


def propose(messages: Sequence[PromptMessage], draw: random.Random) -> str:
    """Return the reply to a prompt; `draw` belongs to the request."""
    return respond(messages, BEHAVIOUR, draw)
