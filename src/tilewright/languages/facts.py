"""One fact about a place in the source, as the readers of source hand it over."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Fact"]


class Fact(NamedTuple):
    """Something seen: the field of `StaticFeatures` it belongs in, its name, and its line."""

    field: str
    name: str
    line: int
