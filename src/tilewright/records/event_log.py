"""The event log of a run: appending, and reading also after a kill."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from tilewright.errors import ConfigError, RecordError, reason_of, writing
from tilewright.records.base import newer
from tilewright.records.events import (
    EVENT,
    Event,
    RequestsIssued,
    RunStarted,
    Stepped,
    Turn,
    TurnFinished,
)
from tilewright.records.field_faults import first_fault
from tilewright.records.file_lock import try_lock
from tilewright.records.run_folder import PROBLEMS, REPORT
from tilewright.records.version1 import VALUES, upgrade

EVENTS = "events.jsonl"
BLOCK_BYTES = 1 << 20
"""Bytes after which the lines of many events are written, so that memory holds few of them."""
_OLD_KINDS = {
    old: record
    for record in (RunStarted, RequestsIssued, TurnFinished)
    for old in VALUES[record.__name__]["event"]
}
_OLD_LINE = re.compile(rb'\{\s*"event"\s*:\s*"(%s)"' % "|".join(_OLD_KINDS).encode())
_STEPS = b'{"event":"stepped",'
_REQUESTS = tuple(
    f'{{"event":"{kind}",'.encode()
    for kind in ("requests_issued", *VALUES["RequestsIssued"]["event"])
)


class EventLog:
    """The log of one run, open for writing. Lifetime: the run.

    Each event is on disk when `append` returns. An incomplete last line is removed.

    Args:
        folder: of the run.
        length: the bytes of the log when the resuming process read it.

    Raises:
        ConfigError: it cannot be written, or another process writes it or wrote it since.
    """

    def __init__(self, folder: Path, length: int | None = None) -> None:
        self.path = folder / EVENTS
        with writing(self.path):
            # Without a buffer: a later write, or the end, would write an event that failed.
            self._file: FileIO = open(self.path, "ab+", buffering=0)  # noqa: SIM115 - see `close`
        if not try_lock(self._file):
            self._file.close()
            raise ConfigError(
                f"{folder}: another process works on this run; wait until it ends, or stop it"
            )
        if length is not None and os.fstat(self._file.fileno()).st_size != length:
            self._file.close()
            raise ConfigError(f"{folder}: another process has just resumed this run; try again")
        self._file.seek(0)
        self._file.truncate(self._file.read().rfind(b"\n") + 1)
        self._file.seek(0, os.SEEK_END)

    def append(self, event: Event) -> None:
        """Write an event, as `extend`."""
        self.extend([event])

    def extend(self, events: Iterable[Event]) -> None:
        """Write several events; all are on disk when this returns.

        If the disk refuses one of them, the log has none of them.
        """
        with writing(self.path):
            before = whole = os.fstat(self._file.fileno()).st_size
            try:
                for block in _blocks(events):
                    rest = memoryview(block)
                    while rest:
                        rest = rest[self._file.write(rest) :]
                    whole += len(block)
                os.fsync(self._file.fileno())
            except BaseException as error:
                # The next event must not follow a part of a line. An interrupt keeps whole blocks.
                with suppress(OSError):
                    self._file.truncate(before if isinstance(error, OSError) else whole)
                raise

    def close(self) -> None:
        """Close the file. All events are on disk, so an error of it loses nothing."""
        with suppress(OSError):
            self._file.close()

    def __enter__(self) -> Self:
        """Return the log itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


def _blocks(events: Iterable[Event]) -> Iterator[bytes]:
    """Yield the lines of events, many in one block."""
    lines, size = list[bytes](), 0
    for event in events:
        lines.append(event.model_dump_json().encode() + b"\n")
        size += len(lines[-1])
        if size >= BLOCK_BYTES:
            yield b"".join(lines)
            lines, size = [], 0
    yield b"".join(lines)


def length_of(folder: Path) -> int:
    """Return the bytes of a run's log. Call it before the log is read."""
    path = folder / EVENTS
    try:
        return path.stat().st_size
    except OSError as error:
        raise unreadable_log(folder, error) from error


def is_eval_run(folder: Path) -> bool:
    """Tell whether a folder is that of a run of `eval`: a report, and no log or problems.

    `report` writes a file of the same name into the folder of another run.
    """
    others = (folder / EVENTS, folder / PROBLEMS)
    return os.path.isfile(folder / REPORT) and not any(map(os.path.exists, others))


def unreadable_log(folder: Path, error: OSError) -> RecordError:
    """Return the error for a folder whose event log cannot be read: what it is instead."""
    advice = "name a run folder of bench, optimize, mcp or train"
    if isinstance(error, PermissionError):
        return RecordError(f"{folder / EVENTS}: cannot be read: {reason_of(error)}")
    if not os.path.exists(folder):
        return RecordError(f"{folder}: no such folder; {advice}")
    if is_eval_run(folder):
        shows = f"tilewright explain {folder} shows it"
        return RecordError(f"{folder}: a run of eval, which has a single report; {shows}")
    if not os.path.exists(folder / EVENTS):
        if os.path.isfile(folder / PROBLEMS):
            return RecordError(f"{folder}: its event log {EVENTS} is missing; put it back")
        return RecordError(f"{folder}: no run: it has no {EVENTS}; {advice}")
    return RecordError(f"{folder / EVENTS}: cannot be read: {reason_of(error)}")


def line_fault(error: ValidationError) -> str:
    """Return what is wrong with a line of an event log."""
    first = error.errors()[0]
    if first["loc"][-1:] == ("schema_version",) and isinstance(first["input"], int):
        return newer(first["input"])
    return f"damaged: {first_fault(error)}"


def current_line(line: bytes) -> bytes:
    """Return a line of an event log with the current names; a damaged one stays unchanged."""
    old = _OLD_LINE.match(line)
    if old is None:
        return line
    try:
        event = json.loads(line)
    except ValueError:
        return line
    return json.dumps(upgrade(_OLD_KINDS[old[1].decode()], event)).encode()


def parse_event(line: bytes) -> Event:
    """Parse one line of an event log; a line with old names is accepted."""
    return EVENT.validate_json(current_line(line))


def turns_of(events: Iterable[Event]) -> list[Turn]:
    """Return the last finished turn of each request."""
    return list({e.turn.ask.id: e.turn for e in events if isinstance(e, TurnFinished)}.values())


def read_events(
    folder: Path, *, with_requests: bool = True, left_out: Callable[[str], None] | None = None
) -> Iterator[Event]:
    """Yield the events of a run in order, without an incomplete last line.

    Args:
        folder: of the run.
        with_requests: whether to yield the issued requests, which reports do not need.
        left_out: called with each line that is damaged or of a newer schema. Such a line is
            skipped. Without `left_out` it is an error.

    Raises:
        RecordError: there is no log, or a line cannot be read.
    """
    path = folder / EVENTS
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise unreadable_log(folder, error) from error
    with file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            if not with_requests and line.startswith(_REQUESTS):
                continue
            try:
                yield parse_event(line)
            except ValidationError as error:
                message = f"{path}:{number}: {line_fault(error)}"
                if left_out is None:
                    raise RecordError(message) from error
                left_out(message)


def read_steps(folder: Path) -> Iterator[Stepped]:
    """Yield the steps of a training in order; turns are not parsed, and damaged lines left out.

    The turns of a log may be a thousand times larger than its steps.

    Raises:
        RecordError: there is no log.
    """
    try:
        file = open(folder / EVENTS, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise unreadable_log(folder, error) from error
    with file:
        for line in file:
            if not line.startswith(_STEPS) or not line.endswith(b"\n"):
                continue
            with suppress(ValidationError):
                event = parse_event(line)
                if isinstance(event, Stepped):
                    yield event
