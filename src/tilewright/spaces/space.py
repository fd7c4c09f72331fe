"""A space of programs: knobs with ordered values, and the source of each combination.

Two programs of a space never have the same source, so a source tells its knobs.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tilewright.records.census import source_digest

PROBLEMS = Path(__file__).with_name("problems")
Value = str | int
Knobs = dict[str, Value]
"""A value for each knob, in the order of the space's knobs."""


@dataclass(frozen=True)
class Space:
    """A problem, the knobs of its programs, and the function that writes a program."""

    name: str
    tag: str
    """Tag of a fenced block with a program: `cpp` or `python`."""
    values: Mapping[str, tuple[Value, ...]]
    """The values of each knob, in order: a move goes one notch up or down."""
    words: Mapping[str, tuple[str, ...]]
    """Words by which an action or a note means a knob."""
    start: Mapping[str, Value]
    """A correct program as a beginner writes it."""
    allows: Callable[[Knobs], bool]
    """Tells whether a combination of values is a program of the space."""
    write: Callable[[Knobs], str]
    """Returns the source of a program."""

    @property
    def problem_path(self) -> Path:
        """Return the file of the problem."""
        return PROBLEMS / f"{self.name}.py"

    @functools.cached_property
    def by_digest(self) -> dict[str, Knobs]:
        """Return all programs by the digest of their source."""
        return {source_digest(self.write(knobs)): knobs for knobs in programs(self)}

    @functools.cached_property
    def by_spoiled_digest(self) -> dict[str, Knobs]:
        """Return all programs by the digest of their source after `spoiled`."""
        return {source_digest(spoiled(self.write(knobs))): knobs for knobs in programs(self)}


def programs(space: Space) -> list[Knobs]:
    """Return all programs of a space; the last knob changes fastest."""
    combinations = itertools.product(*space.values.values())
    every = (dict(zip(space.values, values, strict=True)) for values in combinations)
    return [knobs for knobs in every if space.allows(knobs)]


def source(space: Space, knobs: Mapping[str, Value]) -> str:
    """Return the canonical source of a program.

    Raises:
        ValueError: the space has no such program.
    """
    ordered = {name: knobs[name] for name in space.values if name in knobs}
    known = ordered.keys() == space.values.keys() == knobs.keys() and all(
        value in space.values[name] for name, value in ordered.items()
    )
    if not known or not space.allows(ordered):
        raise ValueError(f"the space {space.name} has no program {dict(knobs)}")
    return space.write(ordered)


def moves(space: Space, knobs: Mapping[str, Value]) -> list[Knobs]:
    """Return the programs that differ from one in one knob, by one notch."""
    found = []
    for name, values in space.values.items():
        place = values.index(knobs[name])
        for other in (place - 1, place + 1):
            if 0 <= other < len(values):
                moved = {**knobs, name: values[other]}
                if space.allows(moved):
                    found.append(moved)
    return found


def knobs_of(space: Space, text: str) -> Knobs | None:
    """Return the knobs of a source; `None` if it is no program of the space."""
    found = space.by_digest.get(source_digest(text))
    return None if found is None else dict(found)


def spoiled(text: str) -> str:
    """Return a source without its last bracket: it builds no longer."""
    place = max(text.rfind(")"), text.rfind("}"))
    return text[:place] + text[place + 1 :]


def intended_knobs(space: Space, text: str) -> Knobs | None:
    """Return the knobs of a source, also of a spoiled one; `None` if it is neither."""
    found = space.by_spoiled_digest.get(source_digest(text))
    return knobs_of(space, text) if found is None else dict(found)
