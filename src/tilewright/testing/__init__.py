"""Checks for plug-ins, and SynthKernel-1: synthetic programs with exact verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.testing.strategy_checks import StrategyFault, check_strategy

__all__ = ["StrategyFault", "check_strategy"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - attributes of several types
    # The checks import the whole loop, which most users of this package do not need.
    if name in __all__:
        from tilewright.testing import strategy_checks

        return getattr(strategy_checks, name)
    raise AttributeError(name)
