"""Which earlier turns a prompt shows: the context management of sequential test-time scaling.

Rewards in order of turns, `None` for what could not be judged: such a turn is never shown. All
return places in chronological order (Dr. Kernel, arXiv 2602.05885, section on test-time scaling).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["CONTEXTS", "Context", "best_window", "last_w", "top_w", "vanilla"]

Context = Callable[[Sequence[float | None], int], list[int]]


def vanilla(rewards: Sequence[float | None], w: int) -> list[int]:  # noqa: ARG001 - one signature
    """Return all: the conversation grows until a model's context is full."""
    return _judged(rewards)


def last_w(rewards: Sequence[float | None], w: int) -> list[int]:
    """Return the newest `w`."""
    return _judged(rewards)[-w:]


def top_w(rewards: Sequence[float | None], w: int) -> list[int]:
    """Return the `w` of the highest reward, of equal ones the newest (the paper's text)."""
    best = sorted(_judged(rewards), key=lambda place: (rewards[place] or 0.0, place))
    return sorted(best[-w:])


def best_window(rewards: Sequence[float | None], w: int) -> list[int]:
    """Return `w` in a row with the largest sum, of equal ones the earliest (the released code)."""
    judged = _judged(rewards)
    if len(judged) <= w:
        return judged
    sums = [
        sum(rewards[place] or 0.0 for place in judged[start : start + w])
        for start in range(len(judged) - w + 1)
    ]
    start = max(range(len(sums)), key=lambda place: (sums[place], -place))
    return judged[start : start + w]


def _judged(rewards: Sequence[float | None]) -> list[int]:
    return [place for place, reward in enumerate(rewards) if reward is not None]


CONTEXTS: dict[str, Context] = {
    "vanilla": vanilla,
    "last_w": last_w,
    "top_w": top_w,
    "best_window": best_window,
}
