"""The files of the red-team suite `tests/attacks`, and those that its generators write."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GeneratedCase"]


@dataclass(frozen=True)
class GeneratedCase:
    """An attack, its honest counterpart and their problem, as a generator writes them.

    `name` is the stem of all three files. Both candidates begin with the header of a file of the
    suite, with `problem: NAME` and, in the attack, `counterpart: NAME.py`.
    """

    name: str
    problem: str
    attack: str
    honest: str
