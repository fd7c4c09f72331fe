"""Whether a candidate may use more of a device than one stream of work."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.records import SourceFile

__all__ = ["names_streams"]

MARKS = (
    *("stream", "graph", "compile", "lstm", "gru", "rnn"),
    *("linalg", "inverse", "cholesky", "svd"),
)
"""Streams by name, graphs, which have branches, and what libraries may spread over streams."""


def names_streams(files: Iterable[SourceFile]) -> bool:
    """Tell whether any of `files` names several streams, or what a library uses several for.

    By words alone, wherever they stand: who is taken for such a one has a process as any program
    has it, and who hides them only takes from itself.
    """
    texts = (file.text.lower() for file in files)
    return any(mark in text for text in texts for mark in MARKS)
