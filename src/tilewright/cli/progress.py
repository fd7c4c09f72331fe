"""Live progress on standard error: a bar of rich on a terminal, else a few plain lines."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from statistics import median
from typing import Any, Self

from rich import progress as rich_progress
from rich.console import Console

from tilewright.cli.output import one_line, print_line, printable
from tilewright.records.codes import Stage

FIRST_LINE_S = 2.0
"""Seconds until the first line without a terminal. A shorter command prints no progress."""
MINUTES_FROM_S = 90.0
"""Seconds from which on the remaining time is shown in minutes."""
MEDIAN_ITEMS = 1000
"""Last items of which the median tells the remaining time. All would cost more with each item."""
PROGRESS_ROWS = 1000
"""Rows between two updates of a progress that counts them."""
STAGES: dict[str, str] = {
    Stage.BUILD: "compiling the candidate",
    Stage.PRECOMPILE: "compiling the Triton kernels",
    Stage.PREPARE_JUDGE: "preparing the problem",
    Stage.DEVICE_WAIT: "waiting for the device",
    Stage.START_JUDGE: "starting the judge",
    Stage.CHECK_PROBLEM: "checking the problem itself",
    Stage.LOAD: "loading the candidate",
    Stage.CONSTRUCT: "constructing the candidate",
    Stage.CORRECTNESS: "comparing outputs",
    Stage.TRACE: "listing kernels",
    Stage.TIMING: "timing",
    Stage.PROFILE: "measuring its own kernels",
    Stage.LAUNCH_SUPPRESSION: "running it without its own launches",
    Stage.SHUTDOWN: "stopping processes",
    Stage.CEILINGS: "measuring the device",
    Stage.CLEANUP: "cleaning up",
}
"""The words for each stage."""
SHOWN = {
    "problem_check": "the problem itself: {case}",
    "sample": "correctness: {case}, {variation}",
    "timing": "timing: {case}",
    "waiting": "{message}",
    "retry": "evaluating again: {because}",
    "host_lost": "{message}",
}
"""The events that are shown, and their words."""
LOUD = ("waiting", "retry", "host_lost")
"""Events that are written without `verbose`, because the user may have to act. Workers of one
command may wait for the same device thousands of times, so each text is written once."""


def describe(event: str, fields: dict[str, Any]) -> str:
    """Return an event of the evaluator in a few words, or an empty text if it is not shown."""
    if event == "stage":
        # A server of another version may have further stages.
        return STAGES.get(str(fields["stage"]), str(fields["stage"]))
    return SHOWN.get(event, "").format_map(fields)


class Progress:
    """Shows the events of evaluations while it is entered. Call it with an event and its fields.

    On a terminal it updates one line. Elsewhere it writes a line after two seconds, and then at
    intervals that double. `verbose` writes every event.
    """

    def __init__(self, what: str = "", *, now: str = "starting", verbose: bool = False) -> None:
        self.what = what
        self.events = 0
        self._verbose = verbose
        self._now = now
        self._written = set[str]()
        self._start = time.monotonic()
        self._rich = rich_progress.Progress(
            rich_progress.SpinnerColumn(),
            rich_progress.TextColumn("{task.description}", markup=False),
            rich_progress.TextColumn("{task.fields[rates]}", markup=False),
            console=Console(stderr=True, highlight=False, markup=False),
            transient=True,
            refresh_per_second=4,
            get_time=time.monotonic,
            disable=not sys.stderr.isatty(),
        )
        self._id = self._rich.add_task("", total=None, left="", rates="")
        self._reached_at: tuple[float, int] | None = None
        self._rates: Callable[[], str] = str
        self._each_s = deque[float](maxlen=MEDIAN_ITEMS)
        """Seconds from one item to the next, for the last items that this invocation finished."""
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._write_lines, daemon=True)

    def __enter__(self) -> Self:
        self._update()
        self._rich.start()
        if self._rich.disable and not self._verbose:
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._rich.stop()
        if self._ticker.is_alive():
            self._ticker.join()

    def __call__(self, event: str, fields: dict[str, Any]) -> None:
        self.events += 1
        text = describe(event, fields)
        if text:
            self._update(text)
            if self._verbose or (event in LOUD and text not in self._written):
                self._written.add(text)
                self._write()

    def about(self, what: str) -> None:
        """Name the subject of the following events."""
        self.what = what
        self._update("starting")
        if self._verbose:
            self._write()

    def show_rates(self, rates: Callable[[], str]) -> None:
        """Show the text that `rates` returns behind what is done, as it is at each moment."""
        self._rates = rates

    def reached(self, done: int, total: int) -> None:
        """Show that `done` of `total` are done. A resumed run begins with a count above 0."""
        if self._rich.tasks[0].total is None:
            bar = (
                rich_progress.BarColumn(),
                rich_progress.MofNCompleteColumn(),
                rich_progress.TextColumn("{task.fields[left]}"),
            )
            self._rich.columns = (*self._rich.columns, *bar)
            self._rich.reset(self._id, total=total, completed=done)
        now = time.monotonic()
        if self._reached_at is not None and done > self._reached_at[1]:
            begun, before = self._reached_at
            self._each_s += [(now - begun) / (done - before)] * (done - before)
        self._reached_at = now, done
        self._rich.update(self._id, total=total, completed=done, left=self._left(total - done))

    def in_phase(self, done: int, total: int, phase: str) -> None:
        """Show that `done` of `total` are done, and what goes on now."""
        self.reached(done, total)
        self._update(phase)

    def _left(self, count: int) -> str:
        """Return the estimated time of `count` more items, or nothing.

        It rests on the median: one item may take minutes, and the next one a second.
        """
        left_s = median(self._each_s) * count if self._each_s else 0.0
        if not left_s:
            return ""
        return f"{left_s / 60:.0f} min left" if left_s > MINUTES_FROM_S else f"{left_s:.0f} s left"

    def note(self, text: str) -> None:
        if self._rich.disable:
            print_line(printable(text))
        else:
            self._rich.console.print(f"tilewright: {printable(text)}")

    def _update(self, now: str | None = None) -> None:
        self._now = one_line(now) if now else self._now
        words = f"{self.what}: {self._now}" if self.what else self._now
        self._rich.update(self._id, description=printable(words), rates=printable(self._rates()))

    def _write(self) -> None:
        task, parts = self._rich.tasks[0], list[str]()
        if task.total is not None:
            parts.append(f"{task.completed:.0f} of {task.total:.0f}")
            parts.append(task.fields["left"])
        line = ", ".join(filter(None, [*parts, printable(self._rates()), task.description]))
        self.note(f"{line}; {time.monotonic() - self._start:.1f} s so far")

    def _write_lines(self) -> None:
        wait = FIRST_LINE_S
        while not self._over.wait(wait):
            self._write()
            wait *= 2


def counting(progress: Progress, verb: str, done: str) -> Callable[[int], None]:
    """Return a function that shows the number of rows that are done, now and then."""

    def count(number: int) -> None:
        if number % PROGRESS_ROWS == 0:
            progress.about(f"{verb}, {number} {done}")

    return count
