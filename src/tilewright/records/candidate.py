"""A candidate, and the baselines that it is compared with."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from tilewright.records.base import Record
from tilewright.records.problem import SourceFile


def collide(one: str, other: str) -> bool:
    """Tell whether two paths are equal, or one would have to be a folder of the other."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


class Candidate(Record):
    """Source files, the language they are written in, and the name they export."""

    language: str
    files: tuple[SourceFile, ...] = Field(min_length=1)
    """The first file is the one that is loaded."""
    entry: str
    allow_imports: tuple[str, ...] = ()
    """Host folders of packages that the runner may import, mounted read-only."""

    @field_validator("files")
    @classmethod
    def _files_lie_apart(cls, files: tuple[SourceFile, ...]) -> tuple[SourceFile, ...]:
        for place, file in enumerate(files):
            for other in files[:place]:
                if collide(file.path, other.path):
                    raise ValueError(f"files {other.path!r} and {file.path!r} collide")
        return files


class Baseline(Record):
    """A baseline of a speed-up: the eager or compiled reference, or another candidate."""

    name: str
    kind: Literal["eager", "compile", "candidate"]
    """`compile` is torch.compile; a baseline named `max-autotune` uses that mode."""
    candidate: Candidate | None = None
