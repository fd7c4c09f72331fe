"""The viewer's page: served on this machine only, or written as one file."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlparse

from tilewright.errors import ConfigError, RecordError
from tilewright.records.event_log import is_eval_run
from tilewright.records.events import TRAININGS
from tilewright.reports.html_report import drawn, page_of_eval
from tilewright.reports.loader import (
    MAX_WHOLE_REPORTS,
    begun_at,
    device_of,
    title_of,
    title_of_problem,
    winners,
)
from tilewright.reports.run_list import RunList
from tilewright.reports.turn_view import Turns

LOOPBACK = "127.0.0.1"
MAX_PAGE_BYTES = 8_000_000
"""Largest size of an exported page."""
MAX_OPENED = 16
"""Runs of a folder whose turns are kept for their pages."""
READ_LIMIT_S, FOLLOW_S = 0.5, 1.0
"""Most seconds of reading between two messages to a page, and seconds between two looks."""
TURNING = frozenset({"first correct", "best so far", "new leader", "leader lost", "hack"})
"""Marks of turns that change the course of a search."""


def _page(turns: Turns, rows: list[dict[str, Any]], whole: dict[str, Any], *, live: bool) -> str:
    begun = turns.begun
    assert begun is not None
    about = {
        "name": begun.name,
        "problems": begun.problems,
        "device": device_of(begun),
        "kind": begun.kind,
        "evaluator": begun.evaluator,
        "begun": begun_at(turns.folder.resolve().name),
        "folder": str(turns.folder),
        "protocol": begun.protocols[0],
        "strategies": begun.strategies,
        "samples": begun.samples,
        "cells": turns.cells,
        "winners": winners(turns.folder),
        "titles": {name: title_of_problem(item) for name, item in turns.problems.items()},
        "left_out": len(turns.rows) - len(rows) if not live else 0,
    }
    data = {"about": about, "rows": rows, "whole": whole, "live": live, "steps": turns.steps()}
    title = title_of(begun) if begun.kind in TRAININGS else f"{begun.problems}, {begun.name}"
    styles = ["page.css", "view.css"]
    scripts = ["training.js", "search_chart.js", "turn.js", "view.js"]
    return drawn("view", title, data, styles, scripts)


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


def runs_page(rows: list[dict[str, Any]], folder: Path, *, live: bool) -> str:
    """Return the page of a folder of runs. A live page has no rows and follows the server."""
    data = {"folder": str(folder), "rows": rows, "live": live}
    return drawn("runs", f"Runs in {folder.resolve()}", data, ["page.css", "runs.css"], ["runs.js"])


class Viewer(ThreadingHTTPServer):
    """Serves a run, or a folder of runs, on the loopback address. Lifetime: until `shutdown`.

    A path is the folder of a run of `eval`.
    """

    daemon_threads = True

    def __init__(self, shown: Turns | RunList | Path, port: int = 0) -> None:
        self.shown = shown
        self.stopping = threading.Event()
        self._opened: dict[str, Turns] = {}
        self._opening = threading.Lock()
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            said = f"--port {port}: {error.strerror}; leave it out for a free one"
            raise ConfigError(said) from error

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.server_address[1]}/"

    def turns_at(self, path: str) -> tuple[Turns, str]:
        """Return the run that a path names, and the rest of the path; `KeyError`: there is none."""
        if isinstance(self.shown, Turns):
            return self.shown, path
        folder, name, rest = self._listed(path)
        with self._opening:
            turns = self._opened.pop(name, None) or Turns(folder)
            self._opened[name] = turns
            while len(self._opened) > MAX_OPENED:
                del self._opened[next(iter(self._opened))]
        return turns, f"/{rest}"

    def eval_run_at(self, path: str) -> Path | None:
        """Return the run of `eval` whose page a path names; `None`: it names no such run."""
        if isinstance(self.shown, Path):
            return self.shown if path == "/" else None
        if isinstance(self.shown, Turns) or not path.startswith("/runs/"):
            return None
        folder, _, rest = self._listed(path)
        return folder if rest == "" and is_eval_run(folder) else None

    def _listed(self, path: str) -> tuple[Path, str, str]:
        """Return the listed run that a path names: its folder, its name, the rest of the path."""
        empty, runs, name, rest = path.split("/", 3) if path.count("/") > 2 else ("", "", "", "")
        if (empty, runs) != ("", "runs") or not isinstance(self.shown, RunList):
            raise KeyError(path)
        folder = self.shown.path_of(unquote(name))
        if folder is None:
            raise KeyError(path)
        return folder, name, rest

    def shutdown(self) -> None:
        """End the server, and every page that follows it."""
        self.stopping.set()
        super().shutdown()


class _Handler(BaseHTTPRequestHandler):
    server: Viewer

    def do_GET(self) -> None:
        """Answer with a page, with new rows, or with one turn."""
        where, shown = urlparse(self.path), self.server.shown
        try:
            if not self._is_meant():
                self._fail(HTTPStatus.FORBIDDEN, "this server answers only this machine\n")
            elif (alone := self.server.eval_run_at(where.path)) is not None:
                self._send(page_of_eval(alone), "text/html; charset=utf-8")
            elif isinstance(shown, RunList) and where.path == "/":
                self._send(runs_page([], shown.folder, live=True), "text/html; charset=utf-8")
            elif isinstance(shown, RunList) and where.path == "/events":
                self._follow(shown)
            else:
                self._answer(*self.server.turns_at(where.path), parse_qs(where.query))
        except (ValueError, KeyError, IndexError):
            self._fail(HTTPStatus.BAD_REQUEST, "no such run or turn\n")
        except RecordError as error:
            self._fail(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))

    def _answer(self, turns: Turns, path: str, query: dict[str, list[str]]) -> None:
        if path == "/":
            self._send(_page(turns, [], {}, live=True), "text/html; charset=utf-8")
        elif path == "/rows.json":
            after = int(query.get("after", ["0"])[0])
            turns.look()
            self._json(turns.rows[max(after, 0) :])
        elif path == "/steps.json":
            changed = int(query.get("known", ["-1"])[0]) != turns.step_version
            steps = turns.steps() if changed else None
            self._json({"version": turns.step_version, "steps": steps})
        elif path == "/turn.json":
            self._json(turns.whole(range(len(turns.rows))[int(query["n"][0])]))
        else:
            self._fail(HTTPStatus.NOT_FOUND, "nothing here\n")

    def _follow(self, runs: RunList) -> None:
        """Send the rows that change, as server-sent events, until the page is closed."""
        self.send_response(HTTPStatus.OK)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-store")
        self.end_headers()
        known = -1
        with suppress(OSError):
            while not self.server.stopping.is_set():
                complete = runs.look(READ_LIMIT_S)
                rows, version = runs.rows(known), runs.version
                # Without news a comment, so that a closed page is noticed.
                text = json.dumps({"rows": rows, "complete": complete}, separators=(",", ":"))
                line = f"data: {text}\n\n" if rows or known < 0 else ": nothing new\n\n"
                self.wfile.write(line.encode())
                self.wfile.flush()
                known = version
                self.server.stopping.wait(FOLLOW_S if complete else 0.0)

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
