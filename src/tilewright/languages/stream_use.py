"""Whether a candidate may use more than one stream of a device."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.records import SourceFile

MARKS = (
    *("stream", "graph", "compile", "lstm", "gru", "rnn"),
    *("linalg", "inverse", "cholesky", "svd"),
)
"""Keywords of streams, of graphs, which have branches, and of libraries that use streams."""


def names_streams(files: Iterable[SourceFile]) -> bool:
    """Tell whether any of `files` has a keyword of several streams, anywhere in its text.

    A false positive only gets the driver's default number of queues. A candidate that hides its use
    of streams only slows itself down.
    """
    texts = (file.text.lower() for file in files)
    return any(mark in text for text in texts for mark in MARKS)
