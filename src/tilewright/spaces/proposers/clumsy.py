"""Makes several changes at once and spoils some programs: `scripted:.../clumsy.py`."""

from __future__ import annotations

from tilewright.spaces.proposing import SURE, Behaviour, Proposer, several

answer = Proposer(Behaviour(several, SURE)).answer
