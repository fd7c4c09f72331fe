"""Names of our parts in verl and Ray. No import of either."""

from __future__ import annotations

AGENT_LOOP = "tilewright_turns"
TRAINER = "tilewright_sync"
ACTOR = "tilewright_run"
"""The actor that holds the run."""
