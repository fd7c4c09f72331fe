"""The request log: one JSON object per line, on stderr or in a file that may be rotated."""

from __future__ import annotations

import contextlib
import json
import logging
import logging.handlers
import sys
from datetime import UTC, datetime
from pathlib import Path

from tilewright.errors import writing

MAX_VALUE_CHARS = 300
"""Characters of one value, since clients may send long ones."""


class RequestLog:
    """Writes one line for each event. Lifetime: the server. Safe to use from several threads.

    A line that cannot be written, for example on a full disk, is lost; no error is raised.
    """

    def __init__(self, path: Path | None) -> None:
        with writing(f"serve.log: {path}"):
            self._handler: logging.Handler = (
                logging.StreamHandler(sys.stderr)
                if path is None
                else logging.handlers.WatchedFileHandler(path.expanduser(), encoding="utf-8")
            )
        # The default prints a traceback for each lost line.
        self._handler.handleError = lambda record: None  # type: ignore[method-assign] # noqa: ARG005

    def write(self, event: str, **fields: object) -> None:
        """Write one event without its `None` values, and with strings cut."""
        row: dict[str, object] = {"at": datetime.now(UTC).isoformat(), "event": event}
        row |= {name: value for name, value in fields.items() if value is not None}
        for name, value in row.items():
            if isinstance(value, str):
                row[name] = value[:MAX_VALUE_CHARS]
        # JSON escapes line breaks, so an event stays one line.
        text = json.dumps(row, default=str)
        record = logging.makeLogRecord({"msg": text, "levelno": logging.INFO})
        # `handleError` does not cover the opening of a rotated file.
        with contextlib.suppress(OSError, ValueError):
            self._handler.handle(record)

    def close(self) -> None:
        # The handler tries once more to write lines that did not fit on the disk.
        with contextlib.suppress(OSError, ValueError):
            self._handler.close()
