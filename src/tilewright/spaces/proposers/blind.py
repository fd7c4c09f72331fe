"""Moves one random knob of the parent by one notch: `--model scripted:.../blind.py`."""

from __future__ import annotations

from tilewright.spaces.proposing import Behaviour, Proposer, blind

answer = Proposer(Behaviour(blind)).answer
