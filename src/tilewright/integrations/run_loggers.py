"""Loggers of other tools that follow the event log of a run, each in a thread of its own.

A logger that fails, or that hangs, gives one warning. It stops nothing and delays nothing.
"""

from __future__ import annotations

import importlib
import json
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Protocol

from tilewright.config.schema import LoggerName
from tilewright.errors import ConfigError, RecordError, writing
from tilewright.integrations.packages import LOGGERS, require
from tilewright.integrations.run_series import (
    BestCandidate,
    LogFollower,
    Point,
    best_candidates,
    series_of,
)
from tilewright.records.events import RunStarted

Warn = Callable[[str], None]
STATES = "loggers"
"""Folder of a run with one file for each destination of its curves."""
PERIOD_S = 1.0
"""Seconds between two looks at the event log."""
CLOSE_S = 30.0
"""Most seconds that the end of a run waits for a logger that still sends."""
MAX_REASON = 300
"""Most characters of a logger's error that a warning quotes."""
MAX_CANDIDATES = 100
"""Most problems whose best candidates are sent as files."""


@dataclass(frozen=True)
class Destination:
    """The place of the curves of one run in one logger."""

    name: str
    """The name that the logger shows."""
    key: str = ""
    """The identity that the logger gave it; empty before the first opening."""
    points: int = 0
    """Points that are there already."""
    live: bool = True
    """Whether the run itself sends them; otherwise they were sent later."""


class OpenLogger(Protocol):
    """One destination, open for points. Lifetime: one thread."""

    key: str

    def send(self, points: Sequence[Point]) -> None:
        """Add points, in order."""

    def keep(self, candidate: BestCandidate, folder: Path) -> None:
        """Add the files of a candidate, which lie in a folder until this call returns."""

    def close(self) -> None:
        """Write what is still in memory, and end the destination."""


class OpenFunction(Protocol):
    """The function `opened` of a logger's file."""

    def __call__(self, run: Path, to: Destination, begun: RunStarted) -> OpenLogger:
        """Open a destination, the same one again if it has a key."""


def check_loggers(names: Sequence[LoggerName], setting: str) -> None:
    """Refuse a logger whose package is missing, too old or too new.

    Raises:
        ConfigError: the message names the command that installs it.
    """
    for name in names:
        try:
            require(LOGGERS[name])
        except ConfigError as error:
            raise ConfigError(f"{setting} names {name}: {error}") from error


@contextmanager
def logged(folder: Path, names: Sequence[LoggerName], warn: Warn) -> Iterator[None]:
    """Send the curves of a run to loggers while the run goes on, and its candidates at its end."""
    ended = threading.Event()
    senders = [_Sender(folder, name, _live(folder, name), warn) for name in names]
    threads = [
        threading.Thread(target=item.follow, args=(ended,), name=item.name, daemon=True)
        for item in senders
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for sender, thread in zip(senders, threads, strict=True):
            thread.join(CLOSE_S)
            sender.abandon()


def send(folder: Path, name: LoggerName) -> Destination:
    """Send the curves and the best candidates of an old run to a new destination.

    Raises:
        RecordError: the log cannot be read.
        ConfigError: the logger fails.
    """
    problems: list[str] = []
    sender = _Sender(folder, name, _next(folder, name, live=False), problems.append)
    ended = threading.Event()
    ended.set()
    sender.follow(ended)
    if problems:
        raise ConfigError(problems[0])
    return sender.to


class _Sender:
    """Reads the log of a run and sends its points to one destination."""

    def __init__(self, folder: Path, name: LoggerName, to: Destination, warn: Warn) -> None:
        self.name, self.to = name, to
        self._folder, self._warn = folder, warn
        self._log, self._series, self._seen = LogFollower(folder), series_of(folder), 0
        self._open: OpenLogger | None = None
        self._silent = threading.Event()
        self._done = False

    def follow(self, ended: threading.Event) -> None:
        """Send what the log holds until the run has ended, then the candidates."""
        try:
            while not ended.wait(PERIOD_S):
                # A training loads its model first, which takes minutes.
                if self._log.has_begun():
                    self._send()
            self._send()
            self._finish()
        # A logger is foreign code: whatever it raises is a warning.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            self._tell(f"failed: {type(error).__name__}: {str(error)[:MAX_REASON]}")
        self._done = True

    def abandon(self) -> None:
        """Warn that the destination is incomplete, if it still is."""
        if not self._done:
            self._tell(f"still sends after {CLOSE_S:g} s")
            self._silent.set()

    def _tell(self, what: str) -> None:
        if not self._silent.is_set():
            again = f"tilewright report {self._folder} --to {self.name}"
            self._warn(f"logger {self.name} {what}; the run is not affected; later: {again}")

    def _send(self) -> None:
        points = [point for event in self._log.fresh() if (point := self._series.add(event))]
        left = points[max(self.to.points - self._seen, 0) :]
        self._seen += len(points)
        if self._series.begun is None:
            return
        # At once, so that a service that is missing is known before the run ends.
        opened = self._opened()
        if left:
            opened.send(left)
            self._remember(replace(self.to, key=opened.key, points=self._seen))

    def _opened(self) -> OpenLogger:
        if self._open is None:
            begun = self._series.begun
            if begun is None:
                raise RecordError(f"{self._folder}: the first line of its event log is missing")
            module = importlib.import_module(f"tilewright.integrations.{self.name}_logger")
            opened: OpenFunction = module.opened
            self._open = opened(self._folder, self.to, begun)
        return self._open

    def _finish(self) -> None:
        if self._open is None:
            return
        for number, candidate in enumerate(best_candidates(self._folder, self._series)):
            if number == MAX_CANDIDATES:
                self._warn(f"logger {self.name}: only {number} best candidates were sent as files")
                break
            with tempfile.TemporaryDirectory(prefix="tilewright-best-") as place:
                _write(candidate, Path(place))
                self._open.keep(candidate, Path(place))
        self._open.close()

    def _remember(self, to: Destination) -> None:
        self.to = to
        path = _state(self._folder, self.name, to.name)
        with writing(path):
            path.parent.mkdir(exist_ok=True)
            fresh = path.with_suffix(".new")
            fresh.write_text(json.dumps(asdict(to)), encoding="utf-8")
            fresh.replace(path)


def _write(candidate: BestCandidate, place: Path) -> None:
    (place / "verdict.json").write_text(candidate.verdict, encoding="utf-8")
    for file in candidate.files:
        target = place / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.data)


def _state(folder: Path, logger: str, name: str) -> Path:
    return folder / STATES / f"{logger}-{name}.json"


def _live(folder: Path, logger: LoggerName) -> Destination:
    """Return the destination of the run itself: the earlier one if it is resumed."""
    for path in sorted(folder.glob(f"{STATES}/{logger}-*.json")):
        with suppress(OSError, ValueError, TypeError):
            found = Destination(**json.loads(path.read_text(encoding="utf-8")))
            if found.live:
                return found
    return _next(folder, logger, live=True)


def _next(folder: Path, logger: LoggerName, *, live: bool) -> Destination:
    """Return a destination with a name that none has for this run."""
    own = folder.resolve().name
    for number in count(1):
        name = own if number == 1 else f"{own}-{number}"
        if not _state(folder, logger, name).exists():
            return Destination(name, live=live)
    raise AssertionError("unreachable")


def described(begun: RunStarted) -> dict[str, str]:
    """Return what a logger shows about a run, apart from its curves."""
    return {
        "kind": begun.kind,
        "model or candidates": begun.name,
        "problems": begun.problems,
        "protocols": ", ".join(begun.protocols),
        "strategies": ", ".join(begun.strategies),
        "device": begun.device,
        "evaluator": f"tilewright {begun.evaluator}",
    }
