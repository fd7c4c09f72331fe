"""Lines on standard error. It imports little, so that errors come early."""

from __future__ import annotations

from collections.abc import Iterable

import click

MAX_LINE = 2000
"""Most characters of an error message on one line."""
MAX_SKIPPED_LINES = 20
"""Most lines about skipped input. One further line gives the number of the others."""
MAX_SKIPPED_CHARACTERS = 300
"""Most characters of such a line, because it may quote the input."""


def print_line(text: str) -> None:
    click.echo(f"tilewright: {text}", err=True)


def print_error(text: str) -> None:
    """Write an error to standard error, always on one line."""
    print_line(f"error: {printable(one_line(text))}")


class Skipped:
    """Names the first skipped items on standard error, and counts all of them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, what: str) -> None:
        self.count += 1
        if self.count <= MAX_SKIPPED_LINES:
            print_line(f"left out: {printable(one_line(what)[:MAX_SKIPPED_CHARACTERS])}")

    def rest(self) -> None:
        if self.count > MAX_SKIPPED_LINES:
            print_line(f"left out: {self.count - MAX_SKIPPED_LINES} more")


def print_skipped(lines: Iterable[str]) -> None:
    """Name the skipped input, one line for each of the first items."""
    named = Skipped()
    for line in lines:
        named(line)
    named.rest()


def printable(text: str) -> str:
    """Escape control characters, with which foreign text could overwrite our lines."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


def one_line(text: str) -> str:
    """Join lines by semicolons; of a traceback keep the text before it and its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    head, traceback, _ = text.partition("Traceback (most recent call last)")
    if traceback and lines:
        return f"{' '.join(head.split())} {lines[-1]}".strip()[:MAX_LINE]
    return "; ".join(lines)[:MAX_LINE]
