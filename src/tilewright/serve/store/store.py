"""The server's store: a task is on the disk before the server answers that it is accepted.

One thread writes. It writes all changes that arrive during a transaction in the next one, so a slow
disk makes transactions larger and not the queue longer. Readers have their own connections.
"""

from __future__ import annotations

import queue
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    Connection,
    Engine,
    Update,
    delete,
    func,
    select,
    update,
)
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from tilewright.errors import InfrastructureError
from tilewright.serve.queue_policy import Waiting
from tilewright.serve.store import queries as sql
from tilewright.serve.store.retention import carry_over, prune
from tilewright.serve.store.tables import NAMES, OWNERS, SHOWN, TASKS, Submitted, Task, open_engine

__all__ = ["Conflict", "Store"]

BATCH_SIZE = 500
Answer = TypeVar("Answer")


class Conflict(Exception):
    """The client uses the name for a different request."""


class Store:
    """Tasks in one SQLite file. Lifetime: the server. Safe to use from several threads.

    `by` names the device model and the version that evaluate. A task that was accepted under
    another `by` and evaluated here is evaluated again when it is submitted again.

    Raises:
        InfrastructureError: the file cannot be opened or created.
    """

    def __init__(self, path: Path, by: str = "") -> None:
        self._by = by
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._engine: Engine = open_engine(path)
            self._file = _identity(path)
        except (OSError, SQLAlchemyError) as error:
            raise InfrastructureError(f"{path}: the store cannot be opened: {error}") from error
        self._path = path
        self._asked: queue.Queue[tuple[Callable[[Connection], Any], Future[Any]] | None]
        self._asked = queue.Queue()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        while (first := self._asked.get()) is not None:
            batch = [first]
            while len(batch) < BATCH_SIZE:
                try:
                    more = self._asked.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    self._asked.put(None)
                    break
                batch.append(more)
            # A caller may have cancelled its future, which must not end this thread.
            batch = [item for item in batch if item[1].set_running_or_notify_cancel()]
            if self.is_there():
                self._write_together(batch)
                continue
            # A write to a deleted file would be lost with the process.
            reason = f"{self._path}: was deleted or replaced; restart the server"
            for _, future in batch:
                future.set_exception(InfrastructureError(reason))

    def _write_together(self, batch: list[tuple[Callable[[Connection], Any], Future[Any]]]) -> None:
        answers: list[tuple[Future[Any], Any, Exception | None]] = []
        try:
            with self._engine.begin() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                for work, future in batch:
                    answers.append((future, *_tried(connection, work)))
        except OperationalError as error:
            failed = InfrastructureError(f"{self._path}: cannot be written: {_cause(error)}")
            answers = [(future, None, failed) for _, future in batch]
        except Exception as error:  # noqa: BLE001 - a bug, which must not end this thread
            if len(batch) > 1:
                # One change has the bug; the others are written without it.
                for item in batch:
                    self._write_together([item])
                return
            failed = InfrastructureError(f"a bug: {type(error).__name__}: {error}")
            answers = [(batch[0][1], None, failed)]
        # The transaction is on the disk now.
        for future, answer, refused in answers:
            if refused is None:
                future.set_result(answer)
            else:
                future.set_exception(refused)

    def is_there(self) -> bool:
        """Tell whether the file is still the one that was opened."""
        try:
            return _identity(self._path) == self._file
        except OSError:
            return False

    def _done(self, work: Callable[[Connection], Answer]) -> Future[Answer]:
        future: Future[Answer] = Future()
        self._asked.put((work, future))
        return future

    def submit(self, given: Submitted) -> Future[Task]:
        """Accept a submission; clients that submit the same request share one task.

        The future raises `Conflict` if the client uses the name for a different request, and
        `InfrastructureError` if the file cannot be written.
        """

        def work(connection: Connection) -> Task:
            if given.name is not None:
                own = {"of_client": given.client, "of_name": given.name}
                known = connection.execute(sql.NAMED, own).first()
                if known is None:
                    row = {"client": given.client, "name": given.name, "key": given.key}
                    connection.execute(sql.ADD_NAME, {**row, "given": given.given})
                elif known.key != given.key:
                    if not given.given or known.given != given.given:
                        raise Conflict(
                            f"you already use the name {given.name!r} for another request"
                        )
                    # The client sent the same request; the settings of the server have changed.
                    changed = {"to_key": given.key, "to_given": given.given}
                    connection.execute(sql.RENAME, {**own, **changed})
            owner = {"client": given.client, "key": given.key}
            connection.execute(sql.ADD_OWNER, owner)
            found = _task(connection, given.key)
            # Another device model or version evaluated it than its key names.
            foreign = found is not None and found.state == "done" and _carried(connection, found)
            if found is not None and not (found.begins_anew or foreign):
                return _joined(connection, found, given)
            fields: dict[str, Any] = {
                "client": given.client,
                "priority": given.priority,
                "state": "queued",
                "attempts": 0,
                "submitted_at": time.time(),
                "started_at": None,
                "ended_at": None,
                "deadline": given.deadline,
                "verdict": None,
                "error": None,
            }
            if found is not None:
                values = {**fields, "result": None}
                connection.execute(update(TASKS).where(TASKS.c.key == given.key).values(values))
                return replace(found, **fields)
            fields |= {"key": given.key, "problem": given.problem}
            packed = zlib.compress(given.request, 1)
            inserted = connection.execute(sql.ADD_TASK, {**fields, "request": packed})
            return Task(**fields, sequence=inserted.lastrowid)

        return self._done(work)

    def begin(self, key: str) -> Future[tuple[Task, bytes] | None]:
        """Mark a queued task as running, and return it with its request, else `None`."""

        def work(connection: Connection) -> tuple[Task, bytes] | None:
            row = connection.execute(sql.BEGIN, {"of_key": key, "now": time.time()}).first()
            if row is None:
                return None
            return Task(*row[:-1]), zlib.decompress(row[-1])

        return self._done(work)

    def pending_start(self, key: str) -> tuple[Task, bytes] | None:
        """Return a running task: `begin` may fail after its transaction was written."""
        found = self.task(key)
        return None if found is None or found.state != "running" else (found, self.request(key))

    def finish(self, key: str, verdict: str, result: bytes) -> Future[None]:
        """Store a result; a task that was cancelled meanwhile stays cancelled."""
        packed = zlib.compress(result, 1)
        return self._end(sql.DONE, key, {"said": verdict, "packed": packed})

    def fail(self, key: str, error: str) -> Future[None]:
        """Mark a task as failed with an internal error."""
        return self._end(sql.FAILED, key, {"said": error[:4000]})

    def expire(self, key: str, error: str) -> Future[bool]:
        """End a task whose deadline has passed; `False` if it has ended or got a later deadline."""

        def work(connection: Connection) -> bool:
            values = {"of_key": key, "said": error, "now": time.time()}
            return bool(connection.execute(sql.LATE, values).rowcount)

        return self._done(work)

    def _end(self, statement: Update, key: str, values: dict[str, Any]) -> Future[None]:
        def work(connection: Connection) -> None:
            connection.execute(statement, {**values, "of_key": key, "now": time.time()})

        return self._done(work)

    def requeue(self, key: str, error: str) -> Future[None]:
        """Queue a running task again, after an internal error."""

        def work(connection: Connection) -> None:
            runs = (TASKS.c.key == key) & (TASKS.c.state == "running")
            connection.execute(update(TASKS).where(runs).values(state="queued", error=error[:4000]))

        return self._done(work)

    def cancel(self, client: str, key: str, *, for_all: bool = False) -> Future[bool]:
        """Cancel an open task; `False` if it has ended, or another client has submitted it too.

        `for_all` cancels it for the other clients too.
        """

        def work(connection: Connection) -> bool:
            others = select(func.count()).where((OWNERS.c.key == key) & (OWNERS.c.client != client))
            if not for_all and connection.execute(others).scalar():
                for table in (NAMES, OWNERS):
                    mine = (table.c.client == client) & (table.c.key == key)
                    connection.execute(delete(table).where(mine))
                return False
            open_ = (TASKS.c.key == key) & sql.IS_OPEN
            values = {"state": "cancelled", "ended_at": time.time()}
            return bool(connection.execute(update(TASKS).where(open_).values(values)).rowcount)

        return self._done(work)

    def prune(self, before: float, most: int | None = None, batch: int = 500) -> Future[int]:
        """Delete tasks that ended before a time or beyond the `most` latest; return how many.

        One call deletes at most `batch`, so that other changes get their turn. It never deletes an
        open task.
        """
        return self._done(lambda connection: prune(connection, before, most, batch))

    def recover_interrupted(self) -> Future[list[Waiting]]:
        """Let everything wait that was being judged when the server died; return what waits."""

        def work(connection: Connection) -> list[Waiting]:
            runs = TASKS.c.state == "running"
            # The end of a server is no failure of the task.
            attempts = func.max(TASKS.c.attempts - 1, 0)
            connection.execute(update(TASKS).where(runs).values(state="queued", attempts=attempts))
            columns = [TASKS.c[name] for name in Waiting.__dataclass_fields__]
            carry_over(connection, self._by)
            found = select(*columns).where(TASKS.c.state == "queued").order_by(TASKS.c.sequence)
            return [Waiting(**row._mapping) for row in connection.execute(found)]

        return self._done(work)

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        """Yield a connection for reading.

        Raises:
            InfrastructureError: the file cannot be read.
        """
        try:
            with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise InfrastructureError(f"{self._path}: cannot be read: {_cause(error)}") from error

    def owns(self, client: str, key: str) -> bool:
        """Tell whether a client has submitted a task."""
        with self._read() as connection:
            return _owns(connection, client, key)

    def task(self, key: str) -> Task | None:
        """Return a task."""
        with self._read() as connection:
            return _task(connection, key)

    def named(self, client: str, name: str) -> str | None:
        """Return the key of a client's task by its name."""
        own = {"of_client": client, "of_name": name}
        with self._read() as connection:
            found: str | None = connection.execute(sql.NAMED, own).scalar()
        return found

    def request(self, key: str) -> bytes:
        """Return a task's request."""
        return self._blob(key, "request")

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
            return [Task(**row._mapping) for row in rows]

    def counts(self) -> dict[str, int]:
        """Return how many tasks there are in each state."""
        wanted = select(TASKS.c.state, func.count().label("count")).group_by(TASKS.c.state)
        with self._read() as connection:
            rows = connection.execute(wanted).mappings()
            return {str(row["state"]): int(row["count"]) for row in rows}

    def close(self) -> None:
        """Write all pending changes, and close the file."""
        self._asked.put(None)
        self._thread.join()
        self._engine.dispose()


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


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


def _tried(
    connection: Connection, work: Callable[[Connection], Any]
) -> tuple[Any, Exception | None]:
    """Return the result of one change, or its conflict.

    Raises:
        Exception: the file cannot be written, or the change has a bug.
    """
    try:
        return work(connection), None
    except Conflict as error:
        # A conflict is raised before any write, so the other changes stay valid.
        return None, error


def _cause(error: SQLAlchemyError) -> str:
    """Return the message of the database, without the statement and its values."""
    return str(getattr(error, "orig", None) or error).partition("\n")[0]


def _carried(connection: Connection, found: Task) -> bool:
    """Tell whether a task has the flag of `carry_over`, and clear it."""
    return bool(connection.execute(sql.CARRY_ON, {"of_key": found.key}).rowcount)


def _owns(connection: Connection, client: str, key: str) -> bool:
    mine = (OWNERS.c.client == client) & (OWNERS.c.key == key)
    return connection.execute(select(OWNERS.c.key).where(mine)).first() is not None


def _task(connection: Connection, key: str) -> Task | None:
    row = connection.execute(sql.TASK, {"of_key": key}).first()
    return None if row is None else Task(**row._mapping)
