"""Values of host code as an analysis sees them: the memory that they may point to."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

StepKind = Literal["operator", "launch"]


@dataclass(frozen=True)
class HostStep:
    """An operator of torch that is called, or a kernel that is launched."""

    number: int
    """Place in the order of the calls."""
    kind: StepKind
    name: str
    line: int
    reads: tuple[int, ...] = ()
    """Earlier steps whose results it uses."""
    target: str = ""
    """The variable that holds its result; empty if there is none."""


@dataclass(frozen=True)
class HostReference:
    """Something other than data that a name may mean."""

    kind: Literal["kernel", "launcher", "function", "class", "instance", "module", "sequence"]
    name: str = ""
    node: ast.AST | None = None


@dataclass(frozen=True)
class Value:
    """The result of an expression."""

    cells: frozenset[int] = frozenset()
    """Blocks of memory, by number: a view shares those of its base."""
    tensor: bool = False
    """Whether it is known to be a tensor."""
    items: tuple[Value, ...] | None = None
    """The parts of a tuple or list."""
    reference: HostReference | None = None


NOTHING = Value()


def union(values: Iterable[Value]) -> Value:
    """Return a value that may be any of some values."""
    found = list(values)
    if len(found) == 1:
        return found[0]
    first = found[0].reference if found else None
    return Value(
        frozenset().union(*(each.cells for each in found)),
        any(each.tensor for each in found),
        None,
        first if all(each.reference == first for each in found) else None,
    )


@dataclass
class ProgramMemory:
    """Which steps wrote each block of memory, and all steps so far. Lifetime: one analysis."""

    writers: list[frozenset[int]] = field(default_factory=list)
    steps: list[HostStep] = field(default_factory=list)

    def new(self, writers: frozenset[int] = frozenset()) -> Value:
        """Return a tensor in memory of its own."""
        self.writers.append(writers)
        return Value(frozenset({len(self.writers) - 1}), tensor=True)

    def steps_behind(self, values: Iterable[Value]) -> frozenset[int]:
        """Return the steps that wrote last to the memory of some values."""
        cells = {cell for value in values for cell in cells_of(value)}
        return frozenset().union(*(self.writers[cell] for cell in cells))

    def add(self, kind: StepKind, name: str, line: int, read: Iterable[Value]) -> int:
        """Record a step, and return its number."""
        number = len(self.steps)
        reads = tuple(sorted(self.steps_behind(read)))
        self.steps.append(HostStep(number, kind, name, line, reads))
        return number

    def write(self, values: Iterable[Value], step: int) -> None:
        """Let a step be the last one that wrote to the memory of some values."""
        for value in values:
            for cell in cells_of(value):
                self.writers[cell] = frozenset({step})


def cells_of(value: Value) -> frozenset[int]:
    """Return the memory of a value and of its parts."""
    return value.cells.union(*(cells_of(item) for item in value.items or ()))
