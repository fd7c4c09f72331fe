"""Source that claims to solve a problem."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tilewright.records.base import Record
from tilewright.records.problem import SourceFile

__all__ = ["Baseline", "Candidate"]


class Candidate(Record):
    """Source files, the language they are written in, and the name they export."""

    language: str
    files: tuple[SourceFile, ...] = Field(min_length=1)
    """The first file is the one that is loaded."""
    entry: str
    allow_imports: tuple[str, ...] = ()
    """Host folders of packages that the contestant may import, mounted read-only."""


class Baseline(Record):
    """What a speed-up is against: eager or compiled reference, or another candidate."""

    name: str
    kind: Literal["eager", "compile", "candidate"]
    """`compile` is torch.compile, in its mode `max-autotune` where that is its name."""
    candidate: Candidate | None = None
