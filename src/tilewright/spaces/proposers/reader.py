"""Copies a knob in which a faster program differs from a slower one: `scripted:.../reader.py`."""

from __future__ import annotations

from tilewright.spaces.proposing import Behaviour, Proposer, reader

answer = Proposer(Behaviour(reader)).answer
