"""Live progress on standard error: a status line on a terminal, else a few plain lines."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

from tilewright.cli.output import print_line, printable

__all__ = ["Progress", "bar_of", "describe"]

BAR_WIDTH = 20
"""Characters of a progress bar."""
FIRST_LINE_S = 2.0
"""Seconds until the first line without a terminal. A shorter command prints no progress."""


def describe(event: str, fields: dict[str, Any]) -> str:
    """Return an event of the evaluator in a few words, or an empty text if it is not shown."""
    if event == "stage":
        return str(fields["stage"])
    if event == "sample":
        return f"correctness: {fields['case']}, {fields['variation']}"
    if event == "timing":
        return f"timing: {fields['case']}"
    if event == "waiting":
        return str(fields["message"])
    if event == "retry":
        return f"evaluating again: {fields['because']}"
    return ""


def bar_of(done: int, total: int, left_s: float | None) -> str:
    """Return the progress as a bar and in words."""
    full = BAR_WIDTH * done // max(total, 1)
    words = f"[{'#' * full}{'.' * (BAR_WIDTH - full)}] {done} of {total}"
    if left_s is None:
        return words
    return (
        f"{words}, {left_s / 60:.0f} min left" if left_s > 90 else f"{words}, {left_s:.0f} s left"
    )


class Progress:
    """Shows the events of evaluations while it is entered. Call it with an event and its fields.

    On a terminal it updates one line. Elsewhere it writes a line after two seconds, and then at
    intervals that double. `verbose` writes every event.
    """

    def __init__(self, what: str = "", *, verbose: bool = False) -> None:
        self.what = what
        self.events = 0
        self._verbose = verbose
        self._start = time.monotonic()
        self._now = "starting"
        self._done: tuple[int, int] | None = None
        self._before = 0
        """The count of the first call of `reached`: a resumed run does not begin at 0."""
        self._over = threading.Event()
        self._status: Status | None = None
        self._ticker: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Begin to show."""
        if sys.stderr.isatty():
            console = Console(stderr=True, highlight=False, markup=False)
            self._status = console.status(Text(self._line()), refresh_per_second=4)
            self._status.start()
        elif not self._verbose:
            self._ticker = threading.Thread(target=self._tick, daemon=True)
            self._ticker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Take the line away."""
        self._over.set()
        if self._status is not None:
            self._status.stop()
        if self._ticker is not None:
            self._ticker.join()

    def __call__(self, event: str, fields: dict[str, Any]) -> None:
        """Show an event."""
        self.events += 1
        text = describe(event, fields)
        if not text:
            return
        self._now = text
        if self._verbose or event in ("waiting", "retry"):
            self._write()
        if self._status is not None:
            self._status.update(Text(self._line()))

    def about(self, what: str) -> None:
        """Name what the following events are about."""
        self.what, self._now = what, "starting"
        if self._verbose:
            self._write()
        if self._status is not None:
            self._status.update(Text(self._line()))

    def reached(self, done: int, total: int) -> None:
        """Say how much of a known amount is done."""
        if self._done is None:
            self._before = done
        self._done = done, total
        if self._status is not None:
            self._status.update(Text(self._line()))

    def note(self, text: str) -> None:
        """Write a line that stays."""
        if self._status is not None:
            self._status.console.print(f"tilewright: {printable(text)}")
        else:
            print_line(printable(text))

    def _line(self) -> str:
        words = f"{self.what}: {self._now}" if self.what else self._now
        if self._done is None:
            return printable(words)
        done, total = self._done
        new = done - self._before
        took_s = time.monotonic() - self._start
        left_s = took_s * (total - done) / new if new and done < total else None
        return printable(f"{bar_of(done, total, left_s)}, {words}")

    def _write(self) -> None:
        self.note(f"{self._line()}; {time.monotonic() - self._start:.1f} s so far")

    def _tick(self) -> None:
        wait = FIRST_LINE_S
        while not self._over.wait(wait):
            self._write()
            wait *= 2
