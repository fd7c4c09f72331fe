"""The viewer's page: served on this machine only, or written as one file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from operator import itemgetter
from typing import Any
from urllib.parse import parse_qs, urlparse

from tilewright.errors import ConfigError, RecordError
from tilewright.reports.html_report import drawn
from tilewright.reports.loader import MAX_WHOLE_REPORTS
from tilewright.reports.turn_view import Turns

LOOPBACK = "127.0.0.1"
MAX_PAGE_BYTES = 8_000_000
"""Largest size of an exported page."""
TURNING = frozenset({"first correct", "best so far", "new leader", "leader lost", "hack"})
"""Marks of turns that change the course of a search."""


def _page(turns: Turns, rows: list[dict[str, Any]], whole: dict[str, Any], *, live: bool) -> str:
    begun = turns.begun
    assert begun is not None
    about = {
        "name": begun.name,
        "problems": begun.problems,
        "device": begun.device,
        "folder": str(turns.folder),
        "protocol": begun.protocols[0],
        "strategies": begun.strategies,
        "samples": begun.samples,
        "cells": turns.cells,
        "left_out": len(turns.rows) - len(rows) if not live else 0,
    }
    data = {"about": about, "rows": rows, "whole": whole, "live": live, "steps": turns.steps()}
    styles, title = ["page.css", "view.css"], f"{begun.problems}, {begun.name}"
    return drawn("view", title, data, styles, ["training.js", "turn.js", "view.js"])


def exported(turns: Turns) -> str:
    """Return one page that works from disk: a row for every turn, and the turns in full that fit.

    Marked turns come first, those that changed the course of a search before all others. Rows that
    do not fit into half of a page are left out in the same order.
    """
    order = sorted(turns.rows, key=_rank)
    rows = sorted(_that_fit(order, MAX_PAGE_BYTES // 2), key=itemgetter("n"))
    whole: dict[str, Any] = {}
    size = len(json.dumps(rows))
    for row in order[:MAX_WHOLE_REPORTS]:
        found = turns.whole(row["n"])
        size += len(json.dumps(found))
        if size > MAX_PAGE_BYTES * 0.9:
            break
        whole[str(row["n"])] = found
    return _page(turns, rows, whole, live=False)


def _rank(row: dict[str, Any]) -> tuple[int, int]:
    marks = row["marks"]
    return (0 if TURNING.intersection(marks) else 1 if marks else 2), row["n"]


def _that_fit(rows: Iterable[dict[str, Any]], most_bytes: int) -> Iterator[dict[str, Any]]:
    for row in rows:
        most_bytes -= len(json.dumps(row, separators=(",", ":"))) + 1
        if most_bytes < 0:
            return
        yield row


class Viewer(ThreadingHTTPServer):
    """Serves one run on the loopback address. Lifetime: until `shutdown`."""

    daemon_threads = True

    def __init__(self, turns: Turns, port: int = 0) -> None:
        self.turns = turns
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            said = f"--port {port}: {error.strerror}; leave it out for a free one"
            raise ConfigError(said) from error

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.server_address[1]}/"


class _Handler(BaseHTTPRequestHandler):
    server: Viewer

    def do_GET(self) -> None:
        """Answer with the page, with new rows, or with one turn."""
        where = urlparse(self.path)
        try:
            if not self._is_meant():
                self._fail(HTTPStatus.FORBIDDEN, "this server answers only this machine\n")
            elif where.path == "/":
                text = _page(self.server.turns, [], {}, live=True)
                self._send(text, "text/html; charset=utf-8")
            elif where.path == "/rows.json":
                after = int(parse_qs(where.query).get("after", ["0"])[0])
                self.server.turns.look()
                self._json(self.server.turns.rows[max(after, 0) :])
            elif where.path == "/steps.json":
                turns, known = self.server.turns, parse_qs(where.query).get("known", ["-1"])[0]
                changed = int(known) != turns.step_version
                steps = turns.steps() if changed else None
                self._json({"version": turns.step_version, "steps": steps})
            elif where.path == "/turn.json":
                number = int(parse_qs(where.query)["n"][0])
                self._json(self.server.turns.whole(range(len(self.server.turns.rows))[number]))
            else:
                self._fail(HTTPStatus.NOT_FOUND, "nothing here\n")
        except (ValueError, KeyError, IndexError):
            self._fail(HTTPStatus.BAD_REQUEST, "no such turn\n")
        except RecordError as error:
            self._fail(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))

    def _is_meant(self) -> bool:
        """Tell whether the host is ours. A foreign page could use another name for this machine."""
        host = (self.headers.get("host") or "").rpartition(":")[0]
        return host in (LOOPBACK, "localhost")

    def _fail(self, status: HTTPStatus, text: str) -> None:
        self._send(text, "text/plain", status)

    def _json(self, document: object) -> None:
        self._send(json.dumps(document, separators=(",", ":")), "application/json")

    def _send(self, text: str, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("cache-control", "no-store")
        self.send_header("x-content-type-options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
