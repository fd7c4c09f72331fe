"""Lines on standard error. It imports little, so that errors come early."""

from __future__ import annotations

from collections.abc import Sequence

import click

__all__ = ["one_line", "print_error", "print_line", "print_skipped", "printable"]

MAX_LINE = 2000
"""Most characters of an error message on one line."""
MAX_SKIPPED_LINES = 20
"""Most lines about skipped input. One further line gives the number of the others."""
MAX_SKIPPED_CHARACTERS = 300
"""Most characters of such a line, because it may quote the input."""


def print_line(text: str) -> None:
    """Write one line to standard error."""
    click.echo(f"tilewright: {text}", err=True)


def print_error(text: str) -> None:
    """Write an error to standard error, always on one line."""
    print_line(f"error: {printable(one_line(text))}")


def print_skipped(lines: Sequence[str]) -> None:
    """Name the skipped input, one line for each of the first items."""
    for line in lines[:MAX_SKIPPED_LINES]:
        print_line(f"left out: {printable(one_line(line)[:MAX_SKIPPED_CHARACTERS])}")
    if len(lines) > MAX_SKIPPED_LINES:
        print_line(f"left out: {len(lines) - MAX_SKIPPED_LINES} more")


def printable(text: str) -> str:
    """Escape control characters, with which foreign text could overwrite our lines."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else f"\\x{ord(char):02x}" for char in text
    )


def one_line(text: str) -> str:
    """Join lines by semicolons; of a traceback keep the text before it and its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    head, traceback, _ = text.partition("Traceback (most recent call last)")
    if traceback and lines:
        lines = [*filter(None, [" ".join(head.split())]), lines[-1]]
        return " ".join(lines)[:MAX_LINE]
    return "; ".join(lines)[:MAX_LINE]
