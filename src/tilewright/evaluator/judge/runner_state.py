"""The judge's record of one runner."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilewright.evaluator.judge.memory_reader import Memory
from tilewright.wire.tensors import Arena

__all__ = ["RunnerState"]


@dataclass
class RunnerState:
    """The judge's record of one runner: its arena, its memory, and the weights that it can hold."""

    inputs: Arena
    memory: Memory
    entries: list[list[Any]] = field(default_factory=list)
    mapping: dict[str, str] = field(default_factory=dict)
