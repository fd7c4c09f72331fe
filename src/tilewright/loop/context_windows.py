"""Which earlier turns a prompt shows: the context management of sequential test-time scaling.

Each function gets the rewards in order of turns, with `None` for a turn that was not judged, which
no prompt shows. It returns the places of the shown turns, oldest first. The functions follow the
section on test-time scaling of Dr. Kernel (arXiv 2602.05885).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["CONTEXTS", "Context", "best_window", "last_w", "top_w", "vanilla"]

Context = Callable[[Sequence[float | None], int], list[int]]


def vanilla(rewards: Sequence[float | None], w: int) -> list[int]:  # noqa: ARG001 - one signature
    """Return all: the conversation grows until the model's context is full."""
    return [place for place, reward in enumerate(rewards) if reward is not None]


def last_w(rewards: Sequence[float | None], w: int) -> list[int]:
    """Return the newest `w`."""
    return vanilla(rewards, w)[-w:]


def top_w(rewards: Sequence[float | None], w: int) -> list[int]:
    """Return the `w` with the highest reward; of equal ones the newest (the paper's text)."""
    best = sorted(vanilla(rewards, w), key=lambda place: (rewards[place] or 0.0, place))
    return sorted(best[-w:])


def best_window(rewards: Sequence[float | None], w: int) -> list[int]:
    """Return `w` in a row with the largest sum; of equal ones the earliest (the released code)."""
    judged = vanilla(rewards, w)
    windows = [judged[start : start + w] for start in range(max(len(judged) - w, 0) + 1)]
    return max(windows, key=lambda places: sum(rewards[place] or 0.0 for place in places))


CONTEXTS: dict[str, Context] = {
    function.__name__: function for function in (vanilla, last_w, top_w, best_window)
}
