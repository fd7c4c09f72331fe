"""The request log: one JSON object per line, on stderr or in a file that may be rotated."""

from __future__ import annotations

import json
import logging
import logging.handlers
import sys
from datetime import UTC, datetime
from pathlib import Path

from tilewright.errors import ConfigError

__all__ = ["RequestLog"]

MAX_VALUE_CHARS = 300
"""Characters of one value: what a client sends is not written out at length."""


class RequestLog:
    """Writes lines. Lifetime: the server. Safe to use from several threads.

    A line that cannot be written, as on a full disk, is lost, and the server goes on.

    Raises:
        ConfigError: the file cannot be opened.
    """

    def __init__(self, path: Path | None) -> None:
        try:
            self._handler: logging.Handler = (
                logging.StreamHandler(sys.stderr)
                if path is None
                else logging.handlers.WatchedFileHandler(path.expanduser(), encoding="utf-8")
            )
        except OSError as error:
            raise ConfigError(f"serve.log: {path}: cannot be written: {error.strerror}") from error
        # Without a line of its own for each that is lost.
        self._handler.handleError = lambda record: None  # type: ignore[method-assign] # noqa: ARG005

    def write(self, event: str, **fields: object) -> None:
        """Write one event; `None` is left out, and strings are cut."""
        row: dict[str, object] = {"at": datetime.now(UTC).isoformat(), "event": event}
        for name, value in fields.items():
            if value is not None:
                row[name] = value[:MAX_VALUE_CHARS] if isinstance(value, str) else value
        # As JSON a line stays one line, whatever a client put into it.
        text = json.dumps(row, default=str)
        self._handler.handle(logging.makeLogRecord({"msg": text, "levelno": logging.INFO}))

    def close(self) -> None:
        """Write what is left."""
        self._handler.close()
