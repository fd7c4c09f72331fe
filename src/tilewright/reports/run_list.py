"""The runs in a folder, one row each, read while they grow.

A row needs sums only, so the lines of a log are read once and none is kept. A folder may hold
10,000 runs: `look` reads for a limited time and goes on at the next call.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tilewright.errors import RecordError
from tilewright.loop.run_state import CANDIDATES
from tilewright.records.event_log import EVENTS, parse_event
from tilewright.records.events import (
    TRAININGS,
    EvalSummary,
    RunStarted,
    SearchStopped,
    Stepped,
    Turn,
    TurnFinished,
)
from tilewright.records.run_folder import REPORT
from tilewright.reports.eval_run import read_eval_run
from tilewright.reports.loader import begun_at

MODEL = "model"
"""The folder that a training writes when all of its steps are done."""
STOPPED = {"nothing to do": "complete: all turns used", "reached": "complete: target reached"}
"""States of a search that has done all of its work, by the reason for which it stopped."""
LOCKS = Path("/proc/locks")
"""The locks that processes of this machine hold on files; a run's writer holds one on its log."""
HEAD_BYTES = 200
"""Bytes of a log's first line that tell it from the log of another run."""
READ_BYTES = 1 << 20
"""Bytes of a log that are read at once, so that a long log does not delay all others."""


@dataclass
class ListedRun:
    """The sums of one run. Lifetime: that of its list."""

    name: str
    path: Path
    read: int = 0
    size: int = 0
    inode: int = 0
    head: bytes = b""
    """The first bytes that were read, by which a file that was replaced is recognised."""
    last_at: float = 0.0
    """When its log last grew, in seconds of the epoch."""
    begun: RunStarted | None = None
    damaged: int = 0
    """Lines that are damaged or of a newer version."""
    turns: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    best: tuple[str, EvalSummary] | None = None
    """Problem and verdict of the fastest correct turn."""
    tokens: int = 0
    usd: float = 0.0
    device_s: float = 0.0
    step: int | None = None
    reward: float | None = None
    stopped: str = ""
    candidates: int | None = None
    """Number of candidates that it judges; `None`: it writes its own."""
    judged: set[int] = field(default_factory=set)
    """Hashes of the candidates that have a turn: an unjudged one gets several."""
    state: str = "reading"
    version: int = 0
    """The number of the look that changed it last."""

    @property
    def pending(self) -> bool:
        """Whether its log has bytes that were not read."""
        return self.read < self.size

    def take_report(self) -> None:
        """Take in the one verdict of a run of `eval`."""
        try:
            found = read_eval_run(self.path.parent)
        except RecordError:
            self.damaged += 1
            return
        self.begun = found.begun
        self._add(found.turn)

    def take(self, line: bytes) -> None:
        """Add an event to the sums."""
        try:
            event = parse_event(line)
        except ValidationError:
            self.damaged += 1
            return
        match event:
            case RunStarted():
                self.begun = event
                self.candidates = _count_lines(self.path.with_name(CANDIDATES))
            case TurnFinished(turn=turn):
                self._add(turn)
            case Stepped(step=step, figures=figures):
                self.step, self.reward = step, figures.get("reward", self.reward)
            case SearchStopped(reason=reason):
                self.stopped = reason
            case _:
                pass

    def _add(self, turn: Turn) -> None:
        self.turns += 1
        self.stopped = ""
        if self.candidates is not None:
            self.judged.add(hash(turn.ask.id))
        if turn.reply is not None:
            self.tokens += turn.reply.prompt_tokens + turn.reply.reply_tokens
            self.usd += turn.reply.usd
        self.device_s += sum(item.seconds for item in turn.judgements)
        for item in turn.judgements[:1]:
            self.verdicts[item.verdict] += 1
            if item.verdict == "correct" and item.speedup is not None:
                known = None if self.best is None else self.best[1].speedup
                if known is None or item.speedup > known:
                    self.best = (turn.ask.problem, item)

    def row(self) -> dict[str, Any]:
        """Return the row for a page or a program."""
        begun, best = self.begun, self.best
        problem, item = best or ("", None)
        return {
            "name": self.name,
            "kind": begun.kind if begun else "",
            "by": begun.name if begun else "",
            "problems": begun.problems if begun else "",
            "device": begun.device if begun else "",
            "begun_at": begun_at(self.name),
            "state": self.state,
            "turns": self.turns,
            "verdicts": dict(self.verdicts),
            "best_problem": problem,
            "speedup": item.speedup if item else None,
            "low": item.low if item else None,
            "high": item.high if item else None,
            "step": self.step,
            "reward": self.reward,
            "tokens": self.tokens,
            "usd": self.usd,
            "device_s": self.device_s,
            "last_at": self.last_at,
            "damaged": self.damaged,
        }


class RunList:
    """The runs directly below a folder. Safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.version = 0
        """Changes whenever a run has changed."""
        self._runs: dict[str, ListedRun] = {}
        self._lock = threading.Lock()

    def look(self, limit_s: float | None = None) -> bool:
        """Read what is new; return whether all of it was read within `limit_s` seconds."""
        with self._lock:
            until = None if limit_s is None else time.monotonic() + limit_s
            self.version += 1
            self._find()
            waiting = [run for run in self._runs.values() if run.pending]
            # The newest first: people look at those.
            for run in sorted(waiting, key=lambda run: -run.last_at):
                if until is not None and time.monotonic() > until:
                    break
                while run.pending and self._read(run):
                    pass
            locked = _locked_inodes()
            for run in self._runs.values():
                self._update_state(run, locked)
            return not any(run.pending for run in self._runs.values())

    def rows(self, since: int = -1) -> list[dict[str, Any]]:
        """Return the rows that changed after the version `since`, the newest runs first."""
        with self._lock:
            changed = [run for run in self._runs.values() if run.version > since]
            return [run.row() for run in sorted(changed, key=lambda run: run.name, reverse=True)]

    def path_of(self, name: str) -> Path | None:
        """Return the folder of a run of the list; `None`: there is no such run."""
        if name not in self._runs:
            # A link may be opened before its list.
            self.look(0.0)
        with self._lock:
            run = self._runs.get(name)
            return None if run is None else run.path.parent

    def _find(self) -> None:
        for path in run_files(self.folder):
            name = path.parent.name
            try:
                found = path.stat()
            except OSError:
                continue
            run = self._runs.setdefault(name, ListedRun(name, path))
            if (found.st_size, found.st_ino) != (run.size, run.inode):
                if found.st_size < run.read or not _begins(run.path, run.head):
                    # Another file: what was summed up is not in it.
                    run = self._runs[name] = ListedRun(name, path)
                run.size, run.inode, run.last_at = found.st_size, found.st_ino, found.st_mtime
                run.version = self.version

    def _read(self, run: ListedRun) -> bool:
        """Read a part of a log; return whether there may be more whole lines."""
        try:
            with open(run.path, "rb") as file:
                file.seek(run.read)
                part = file.read(READ_BYTES)
                if b"\n" not in part and len(part) == READ_BYTES:
                    part += file.readline()
        except OSError:
            part = b""
        run.version = self.version
        run.head = run.head or part[:HEAD_BYTES]
        if run.path.name == REPORT:
            run.take_report()
            run.read = run.size
            return False
        whole = part[: part.rfind(b"\n") + 1]
        for line in whole.splitlines():
            run.take(line)
        run.read += len(whole)
        if not whole:
            # The rest is a line that its writer has not ended.
            run.size = run.read
        return bool(whole)

    def _update_state(self, run: ListedRun, locked: set[int]) -> None:
        if run.inode in locked:
            state = "running"
        elif run.pending:
            state = "reading"
        elif run.begun is None:
            state = "unreadable"
        else:
            state = _ended_state(run)
        if state != run.state:
            run.state, run.version = state, self.version


def _begins(path: Path, head: bytes) -> bool:
    """Tell whether a file begins with these bytes."""
    try:
        with open(path, "rb") as file:
            return file.read(len(head)) == head
    except OSError:
        return False


def _ended_state(run: ListedRun) -> str:
    """Return the state of a run that no process continues."""
    if run.stopped:
        return STOPPED.get(run.stopped, f"stopped: {run.stopped}")
    assert run.begun is not None
    judged_all = run.candidates is not None and len(run.judged) >= run.candidates
    trained = run.begun.kind in TRAININGS and (run.path.parent / MODEL).is_dir()
    return "complete" if run.begun.kind == "eval" or judged_all or trained else "not running"


def _count_lines(path: Path) -> int | None:
    """Return the number of lines of a file; `None`: there is no such file."""
    try:
        with open(path, "rb") as file:
            return sum(1 for _ in file)
    except OSError:
        return None


def run_files(folder: Path) -> Iterator[Path]:
    """Yield the event log of each run below `folder`; of a run of `eval` its report."""
    try:
        with os.scandir(folder) as entries:
            for entry in filter(os.DirEntry.is_dir, entries):
                found = (os.path.join(entry.path, name) for name in (EVENTS, REPORT))
                if (path := next(filter(os.path.isfile, found), None)) is not None:
                    yield Path(path)
    except OSError:
        return


def _locked_inodes() -> set[int]:
    """Return the inodes of files on which a process of this machine holds a whole lock."""
    try:
        lines = LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return set()
    found = set()
    for line in lines:
        words = line.split()
        # NUMBER: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE START END
        if len(words) >= 6 and words[1] == "FLOCK" and words[3] == "WRITE":
            found.add(int(words[5].rpartition(":")[2]))
    return found
