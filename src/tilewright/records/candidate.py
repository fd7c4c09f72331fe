"""Source that claims to solve a problem."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from tilewright.records.base import Record
from tilewright.records.problem import SourceFile

__all__ = ["Baseline", "Candidate", "collide"]


def collide(one: str, other: str) -> bool:
    """Tell whether two paths are one, or one of them would lie in the other as in a folder."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


class Candidate(Record):
    """Source files, the language they are written in, and the name they export."""

    language: str
    files: tuple[SourceFile, ...] = Field(min_length=1)
    """The first file is the one that is loaded."""
    entry: str
    allow_imports: tuple[str, ...] = ()
    """Host folders of packages that the contestant may import, mounted read-only."""

    @field_validator("files")
    @classmethod
    def _files_lie_apart(cls, files: tuple[SourceFile, ...]) -> tuple[SourceFile, ...]:
        for place, file in enumerate(files):
            for other in files[:place]:
                if collide(file.path, other.path):
                    raise ValueError(f"files {other.path!r} and {file.path!r} cannot lie together")
        return files


class Baseline(Record):
    """What a speed-up is against: eager or compiled reference, or another candidate."""

    name: str
    kind: Literal["eager", "compile", "candidate"]
    """`compile` is torch.compile, in its mode `max-autotune` where that is its name."""
    candidate: Candidate | None = None
