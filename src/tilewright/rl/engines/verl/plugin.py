"""The plug-in that verl loads in each of its processes, through the entry point `verl.plugins`."""

from __future__ import annotations

from tilewright.rl.engines.verl.agent_loop import TurnLoop
from tilewright.rl.engines.verl.turn_trainer import VerlTurnTrainer

__all__ = ["TurnLoop", "VerlTurnTrainer"]
