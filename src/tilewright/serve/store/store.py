"""The server's store: a task is on the disk before the server answers that it is accepted.

One thread writes all changes that arrive during a transaction in the next one. So a slow disk makes
transactions larger and not the queue longer. Readers have their own connections.
"""

from __future__ import annotations

import functools
import math
import os
import queue
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine, Update, delete, func, insert, select, update
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from tilewright.errors import InfrastructureError
from tilewright.serve.store import queries as sql
from tilewright.serve.store.tables import (
    CARRIED,
    NAMES,
    OWNERS,
    SERVED,
    SHOWN,
    TASKS,
    Submitted,
    Task,
    open_engine,
)

BATCH_SIZE = 500
"""Most changes of one transaction."""
MAX_ERROR_CHARS = 4000
"""Characters of an error that the store keeps."""
Answer = TypeVar("Answer")
P = ParamSpec("P")
Change = tuple[Callable[[Connection], Any], Future[Any]]


class Conflict(Exception):
    """The client uses the name for a different request."""


def _queued(
    work: Callable[Concatenate[Store, Connection, P], Answer],
) -> Callable[Concatenate[Store, P], Future[Answer]]:
    """Turn a change of the file into a method that queues it and returns its future."""

    @functools.wraps(work)
    def change(self: Store, /, *args: P.args, **more: P.kwargs) -> Future[Answer]:
        future: Future[Answer] = Future()
        self._changes.put((lambda connection: work(self, connection, *args, **more), future))
        return future

    return change


class Store:
    """Tasks in one SQLite file. Lifetime: the server. Safe to use from several threads.

    `by` names the device model and the version that evaluate. A task that another `by` accepted and
    this one evaluated is evaluated again when it is submitted again. A method that changes the file
    returns a future. `InfrastructureError`: the file cannot be used.
    """

    def __init__(self, path: Path, by: str = "") -> None:
        self._by = by
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._engine: Engine = open_engine(path)
            self._file = path.stat()
        except (OSError, SQLAlchemyError) as error:
            raise InfrastructureError(f"{path}: the store cannot be opened: {error}") from error
        self._path = path
        self._changes: queue.SimpleQueue[Change | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        while (first := self._changes.get()) is not None:
            batch = [first]
            while len(batch) < BATCH_SIZE and not self._changes.empty():
                more = self._changes.get()
                if more is None:
                    self._changes.put(None)
                    break
                batch.append(more)
            # A caller may have cancelled its future, which must not end this thread.
            self._write_together([it for it in batch if it[1].set_running_or_notify_cancel()])

    def _write_together(self, batch: list[Change]) -> None:
        answers: list[tuple[Callable[[Any], None], Any]] = []
        try:
            if not self.is_there():
                # A write to a deleted file would be lost with the process.
                raise InfrastructureError("it was deleted or replaced; restart the server")
            with self._engine.begin() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                for work, future in batch:
                    try:
                        answers.append((future.set_result, work(connection)))
                    except Conflict as error:
                        # It is raised before any write, so the other changes stay valid.
                        answers.append((future.set_exception, error))
        except (OperationalError, InfrastructureError) as error:
            failed = InfrastructureError(f"{self._path}: cannot be written: {_cause(error)}")
            answers = [(future.set_exception, failed) for _, future in batch]
        except Exception as error:  # noqa: BLE001 - a bug, which must not end this thread
            if len(batch) > 1:
                # One change has the bug; the others are written without it.
                for item in batch:
                    self._write_together([item])
                return
            failed = InfrastructureError(f"a bug: {type(error).__name__}: {error}")
            answers = [(batch[0][1].set_exception, failed)]
        # The transaction is on the disk now.
        for tell, answer in answers:
            tell(answer)

    def is_there(self) -> bool:
        """Tell whether the file is still the one that was opened."""
        try:
            return os.path.samestat(self._path.stat(), self._file)
        except OSError:
            return False

    @_queued
    def submit(self, connection: Connection, given: Submitted) -> Task:
        """Accept a submission, which clients may share; `Conflict` if its name is in use."""
        if given.name is not None:
            _take_name(connection, given, given.name)
        connection.execute(sql.ADD_OWNER, {"client": given.client, "key": given.key})
        found = _task(connection, given.key)
        is_done = found is not None and found.state == "done"
        # Another device model or version evaluated a flagged task than its key names.
        foreign = is_done and connection.execute(sql.CARRY_ON, {"of_key": given.key}).rowcount
        if found is not None and not (found.begins_anew or foreign):
            return _joined(connection, found, given)
        fields = {column.name: getattr(given, column.name) for column in SHOWN}
        if found is not None:
            fields["sequence"] = found.sequence
            again = update(TASKS).where(TASKS.c.key == given.key)
            connection.execute(again.values(**fields, result=None))
            return Task(**fields)
        del fields["sequence"]
        packed = zlib.compress(given.request, 1)
        inserted = connection.execute(insert(TASKS), {**fields, "request": packed})
        return Task(**fields, sequence=inserted.lastrowid)

    @_queued
    def begin(self, connection: Connection, key: str) -> tuple[Task, bytes] | None:
        """Mark a queued task as running, and return it with its request, else `None`."""
        row = connection.execute(sql.BEGIN, {"of_key": key, "now": time.time()}).first()
        return None if row is None else (Task(*row[:-1]), zlib.decompress(row[-1]))

    def pending_start(self, key: str) -> tuple[Task, bytes] | None:
        """Return a running task: `begin` may fail after its transaction was written."""
        found = self.task(key)
        if found is None or found.state != "running":
            return None
        return found, self._blob(key, "request")

    def finish(self, key: str, verdict: str, result: bytes) -> Future[bool]:
        """Store a result; a task that was cancelled meanwhile stays cancelled."""
        return self._end(sql.DONE, key, {"said": verdict, "packed": zlib.compress(result, 1)})

    def fail(self, key: str, error: str, kind: str | None = None) -> Future[bool]:
        """Mark a task as failed with an error of a kind; `None`: an internal one."""
        # Half of a surrogate pair, as in a name of a file, has no UTF-8 encoding.
        said = error[:MAX_ERROR_CHARS].encode(errors="replace").decode()
        return self._end(sql.FAILED, key, {"said": said, "kind": kind})

    def expire(self, key: str, error: str) -> Future[bool]:
        """End a task whose deadline has passed; `False` if it has ended or got a later deadline."""
        return self._end(sql.LATE, key, {"said": error, "kind": None})

    @_queued
    def _end(
        self, connection: Connection, statement: Update, key: str, values: dict[str, Any]
    ) -> bool:
        changed = connection.execute(statement, {"of_key": key, "now": time.time(), **values})
        return bool(changed.rowcount)

    @_queued
    def requeue(self, connection: Connection, key: str, error: str) -> None:
        """Queue a running task again, after an internal error."""
        runs = update(TASKS).where(TASKS.c.key == key, TASKS.c.state == "running")
        connection.execute(runs.values(state="queued", error=error[:MAX_ERROR_CHARS]))

    @_queued
    def cancel(
        self, connection: Connection, client: str, key: str, *, for_all: bool = False
    ) -> bool:
        """Cancel an open task unless another client has submitted it too, or all if `for_all`."""
        others = select(OWNERS.c.key).where(OWNERS.c.key == key, OWNERS.c.client != client)
        if not for_all and connection.execute(others).first():
            for table in (NAMES, OWNERS):
                mine = (table.c.client == client) & (table.c.key == key)
                connection.execute(delete(table).where(mine))
            return False
        open_ = update(TASKS).where(TASKS.c.key == key, sql.IS_OPEN)
        values = {"state": "cancelled", "ended_at": time.time()}
        return bool(connection.execute(open_.values(values)).rowcount)

    @_queued
    def prune(
        self, connection: Connection, before: float, most: int | None = None, batch: int = 500
    ) -> int:
        """Delete at most `batch` tasks that ended before a time or beyond the `most` latest."""
        # `not_in`: with `in`, SQLite would not use the index of the end times.
        ended = TASKS.c.state.not_in(("queued", "running"))
        if most is not None:
            times = select(TASKS.c.ended_at).where(TASKS.c.ended_at.is_not(None))
            newest_first = times.order_by(TASKS.c.ended_at.desc())
            # The end time of the newest task beyond the limit.
            spare = connection.execute(newest_first.offset(most).limit(1)).scalar()
            if spare is not None:
                before = max(before, math.nextafter(spare, math.inf))
        old = select(TASKS.c.key).where(ended, TASKS.c.ended_at < before).limit(batch)
        keys = connection.execute(old).scalars().all()
        for table in (NAMES, OWNERS, CARRIED, TASKS):
            connection.execute(delete(table).where(table.c.key.in_(keys)))
        return len(keys)

    @_queued
    def recover_interrupted(self, connection: Connection) -> list[Task]:
        """Let everything wait that was being judged when the server died; return what waits."""
        # The end of a server is no failure of the task.
        attempts = func.max(TASKS.c.attempts - 1, 0)
        runs = update(TASKS).where(TASKS.c.state == "running")
        connection.execute(runs.values(state="queued", attempts=attempts))
        _carry_over(connection, self._by)
        found = select(*SHOWN).where(TASKS.c.state == "queued").order_by(TASKS.c.sequence)
        return [Task(*row) for row in connection.execute(found)]

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        try:
            with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise InfrastructureError(f"{self._path}: cannot be read: {_cause(error)}") from error

    def owns(self, client: str, key: str) -> bool:
        """Tell whether a client has submitted a task."""
        own = select(OWNERS.c.key).where(OWNERS.c.client == client, OWNERS.c.key == key)
        with self._read() as connection:
            return connection.execute(own).first() is not None

    def task(self, key: str) -> Task | None:
        """Return a task."""
        with self._read() as connection:
            return _task(connection, key)

    def named(self, client: str, name: str) -> str | None:
        """Return the key of a client's task by its name."""
        with self._read() as connection:
            own = {"of_client": client, "of_name": name}
            found: str | None = connection.execute(sql.NAMED, own).scalar()
        return found

    def result(self, key: str) -> bytes:
        """Return a task's report, or empty bytes."""
        return self._blob(key, "result")

    def _blob(self, key: str, name: str) -> bytes:
        with self._read() as connection:
            found = connection.execute(select(TASKS.c[name]).where(TASKS.c.key == key)).scalar()
        return zlib.decompress(found) if found else b""

    def page(self, client: str | None, state: str | None, after: int, limit: int) -> list[Task]:
        """Return tasks in the order of acceptance, after a sequence number."""
        wanted = select(*SHOWN).where(TASKS.c.sequence > after)
        if client is not None:
            own = select(OWNERS.c.key).where(OWNERS.c.client == client)
            wanted = wanted.where(TASKS.c.key.in_(own))
        if state is not None:
            wanted = wanted.where(TASKS.c.state == state)
        with self._read() as connection:
            rows = connection.execute(wanted.order_by(TASKS.c.sequence).limit(limit))
            return [Task(*row) for row in rows]

    def latest(self, client: str | None, limit: int) -> list[Task]:
        """Return the tasks that were accepted last, the newest first."""
        wanted = select(*SHOWN)
        if client is not None:
            own = select(OWNERS.c.key).where(OWNERS.c.client == client)
            wanted = wanted.where(TASKS.c.key.in_(own))
        with self._read() as connection:
            rows = connection.execute(wanted.order_by(TASKS.c.sequence.desc()).limit(limit))
            return [Task(*row) for row in rows]

    def counts(self) -> dict[str, int]:
        """Return how many tasks there are in each state."""
        wanted = select(TASKS.c.state, func.count()).group_by(TASKS.c.state)
        with self._read() as connection:
            return {str(state): int(count) for state, count in connection.execute(wanted)}

    def close(self) -> None:
        """Write all pending changes, and close the file."""
        self._changes.put(None)
        self._thread.join()
        self._engine.dispose()


def _take_name(connection: Connection, given: Submitted, name: str) -> None:
    """Give a client's name to its submission; `Conflict` if a different request has it."""
    own = {"of_client": given.client, "of_name": name}
    known = connection.execute(sql.NAMED, own).first()
    if known is None:
        row = {"client": given.client, "name": name, "key": given.key, "given": given.given}
        connection.execute(insert(NAMES), row)
    elif known.key != given.key:
        if not given.given or known.given != given.given:
            raise Conflict(f"you already use the name {name!r} for another request")
        # The client sent the same request; the settings of the server have changed.
        connection.execute(sql.RENAME, {**own, "to_key": given.key, "to_given": given.given})


def _joined(connection: Connection, found: Task, given: Submitted) -> Task:
    """Give a shared task the later deadline and the higher priority of its clients."""
    if not found.is_open:
        return found
    deadlines = (found.deadline, given.deadline)
    deadline = None if None in deadlines else max(found.deadline or 0, given.deadline or 0)
    priority = max(found.priority, given.priority)
    if (deadline, priority) != (found.deadline, found.priority):
        values = {"deadline": deadline, "priority": priority}
        connection.execute(update(TASKS).where(TASKS.c.key == found.key).values(values))
    return replace(found, deadline=deadline, priority=priority)


def _cause(error: Exception) -> str:
    """Return the message of the database, without the statement and its values."""
    return str(getattr(error, "orig", None) or error).partition("\n")[0]


def _carry_over(connection: Connection, by: str) -> None:
    """Flag open tasks whose key names another device or version than this server's."""
    if connection.execute(select(SERVED.c.by)).scalar() == by:
        return
    waits = select(TASKS.c.key).where(sql.IS_OPEN)
    connection.execute(insert(CARRIED).prefix_with("OR IGNORE").from_select(["key"], waits))
    connection.execute(delete(SERVED))
    connection.execute(insert(SERVED).values(by=by))


def _task(connection: Connection, key: str) -> Task | None:
    row = connection.execute(sql.TASK, {"of_key": key}).first()
    return None if row is None else Task(*row)
