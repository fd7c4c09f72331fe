"""The cells of the audit: an operator of a library, a dtype, and forward or with backward."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.audit.libraries import LIBRARIES, Call, Library
from benchmarks.audit.libraries.base import candidate_text
from benchmarks.audit.operators import DTYPES, OPERATORS, Operator, problem_text


@dataclass(frozen=True)
class Cell:
    """One row of the audit."""

    library: Library
    call: Call
    dtype: str
    backward: bool

    @property
    def operator(self) -> Operator:
        """The operator, which other libraries may have too."""
        return OPERATORS[self.call.operator]

    @property
    def id(self) -> str:
        """The name of the row, by which a run goes on after an interruption."""
        return f"{self.library.name}/{self.problem_id}"

    @property
    def problem_id(self) -> str:
        """The name of the problem, which the libraries with this operator share."""
        suffix = "-backward" if self.backward else ""
        return f"{self.call.operator}{suffix}-{self.dtype}"

    def problem(self) -> str:
        """Return the problem as source text."""
        return problem_text(self.operator, self.dtype, backward=self.backward)

    def candidate(self, first: Sequence[str] = ()) -> str:
        """Return the candidate as source text, below the lines of `first`."""
        return candidate_text(self.library, self.call, self.operator, first)


def cells_of(library: Library) -> Iterator[Cell]:
    """Yield the cells of a library in the order of its adapter."""
    for call in library.calls:
        for dtype in DTYPES:
            yield Cell(library, call, dtype, backward=False)
        for dtype in DTYPES if call.backward else ():
            yield Cell(library, call, dtype, backward=True)


def all_cells(libraries: Iterable[Library] = tuple(LIBRARIES.values())) -> list[Cell]:
    """Return the cells of libraries, ordered by operator.

    The libraries of an operator follow each other, since they share a judge. Each part of a run
    that was interrupted then compares all libraries.
    """
    order = {name: place for place, name in enumerate(OPERATORS)}
    cells = [cell for library in libraries for cell in cells_of(library)]
    return sorted(cells, key=lambda cell: (order[cell.call.operator], cell.problem_id))
