"""A reward of a training, which is found by its name. No torch."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import cast

from tilewright.records.events import EvalSummary
from tilewright.registry import load
from tilewright.rl.presets import TurnRewardSection


@dataclass(frozen=True, slots=True)
class JudgedTurn:
    """A turn that was judged, with what a reward may read of it."""

    verdict: EvalSummary
    code: str = ""
    """Text of its program; empty where the reward does not read code."""
    parent: EvalSummary | None = None
    """Verdict of the program that it was written to improve on; `None`: there was none, or it is
    unjudged."""
    has_parent: bool = False
    """Whether there was such a program."""


@dataclass(frozen=True)
class TurnReward:
    """A reward of a training. Plug-ins of the kind `rewards` are such objects."""

    reward: Callable[[JudgedTurn, TurnRewardSection], float | None]
    """From a judged turn, and the section `reward` of the preset, to its reward. `None`: it is not
    known, and the turn is left out like an unjudged one."""
    formula: Callable[[TurnRewardSection], str]
    """Returns the formula in one line, with the values of that section."""
    source: str
    """Paper and equation, or who made it."""
    reads_code: bool = False
    """Whether `JudgedTurn.code` must be there."""
    reads_parent: bool = False
    """Whether the reward of a program depends on its parent."""


def find_reward(name: str, packages: Collection[str] | None = None) -> TurnReward:
    """Return the reward of a name; `packages` are those that the setting `plugins` admits.

    Raises:
        PluginError: it is unknown, not admitted, or cannot be imported.
    """
    return cast("TurnReward", load("rewards", name, packages=packages))
