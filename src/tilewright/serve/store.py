"""The server's memory: accepted work is on the disk before anybody is told that it is accepted.

One thread writes. What arrives while it writes is written together next, in one transaction, so a
slow disk makes batches larger and not the queue longer. Readers have connections of their own.
"""

from __future__ import annotations

import math
import queue
import threading
import time
import zlib
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    create_engine,
    delete,
    event,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import SQLAlchemyError

from tilewright.errors import InfrastructureError
from tilewright.serve.tasks import Waiting

__all__ = ["Conflict", "Store", "Submitted", "Task"]

META = MetaData()
TASKS = Table(
    "tasks",
    META,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("key", Text, nullable=False, unique=True),
    Column("client", Text, nullable=False),
    Column("problem", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("submitted_at", Float, nullable=False),
    Column("started_at", Float),
    Column("ended_at", Float),
    Column("deadline", Float),
    Column("verdict", Text),
    Column("error", Text),
    Column("request", LargeBinary, nullable=False),
    Column("result", LargeBinary),
)
Index("by_state", TASKS.c.state, TASKS.c.sequence)
BY_END = Index("by_end", TASKS.c.ended_at)
NAMES = Table(
    "names",
    META,
    Column("client", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("key", Text, nullable=False),
)
OWNERS = Table(
    "owners",
    META,
    Column("client", Text, primary_key=True),
    Column("key", Text, primary_key=True),
)
Index("by_key", OWNERS.c.key)
BUSY_MS = 20_000
MOST_TOGETHER = 500
Answer = TypeVar("Answer")


class Conflict(Exception):
    """A client gave one of its names to other work before."""


@dataclass(frozen=True)
class Task:
    """One task, without its request and result."""

    key: str
    client: str
    problem: str
    priority: int
    state: str
    attempts: int
    submitted_at: float
    started_at: float | None
    ended_at: float | None
    deadline: float | None
    verdict: str | None
    error: str | None
    sequence: int


SHOWN = [TASKS.c[name] for name in Task.__dataclass_fields__]


@dataclass(frozen=True)
class Submitted:
    """What is to be stored of a submission."""

    key: str
    client: str
    problem: str
    priority: int
    request: bytes
    name: str | None = None
    """What the client calls it, if anything."""
    deadline: float | None = None


def _connected(connection: Any, _: object) -> None:  # noqa: ANN401 - a DBAPI connection
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={BUSY_MS}"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


class Store:
    """Tasks in one SQLite file. Lifetime: the server. Safe to use from several threads.

    Raises:
        InfrastructureError: the file cannot be opened or made.
    """

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._engine: Engine = create_engine(f"sqlite:///{path}")
            event.listen(self._engine, "connect", _connected)
            META.create_all(self._engine)
            # A store of an earlier version has none.
            BY_END.create(self._engine, checkfirst=True)
        except (OSError, SQLAlchemyError) as error:
            raise InfrastructureError(f"{path}: no store can be opened: {error}") from error
        self._path = path
        self._asked: queue.Queue[tuple[Callable[[Connection], Any], Future[Any]] | None]
        self._asked = queue.Queue()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        while (first := self._asked.get()) is not None:
            batch = [first]
            while len(batch) < MOST_TOGETHER:
                try:
                    more = self._asked.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    self._asked.put(None)
                    break
                batch.append(more)
            self._write_together(batch)

    def _write_together(self, batch: list[tuple[Callable[[Connection], Any], Future[Any]]]) -> None:
        answers: list[tuple[Future[Any], Any, Exception | None]] = []
        try:
            with self._engine.begin() as connection:
                for work, future in batch:
                    try:
                        # Nested: what one asks for and cannot have is no reason to refuse others.
                        with connection.begin_nested():
                            answers.append((future, work(connection), None))
                    except Conflict as error:
                        answers.append((future, None, error))
        except SQLAlchemyError as error:
            said = InfrastructureError(f"{self._path}: cannot be written: {error}")
            for _, future in batch:
                future.set_exception(said)
            return
        # Only now is it on the disk.
        for future, answer, refused in answers:
            if refused is None:
                future.set_result(answer)
            else:
                future.set_exception(refused)

    def _done(self, work: Callable[[Connection], Answer]) -> Future[Answer]:
        future: Future[Answer] = Future()
        self._asked.put((work, future))
        return future

    def submit(self, given: Submitted) -> Future[Task]:
        """Accept work; the same work is the same task, whoever asks for it.

        The future raises `Conflict` where the client's name stands for other work, and
        `InfrastructureError` where nothing can be written.
        """

        def work(connection: Connection) -> Task:
            if given.name is not None:
                own = (NAMES.c.client == given.client) & (NAMES.c.name == given.name)
                known = connection.execute(select(NAMES.c.key).where(own)).scalar()
                if known not in (None, given.key):
                    raise Conflict(f"{given.name!r} stands for other work of this client")
                if known is None:
                    row = {"client": given.client, "name": given.name, "key": given.key}
                    connection.execute(insert(NAMES).values(**row))
            if not _owns(connection, given.client, given.key):
                connection.execute(insert(OWNERS).values(client=given.client, key=given.key))
            found = _task(connection, given.key)
            if found is not None and found.state not in ("failed", "cancelled"):
                return found
            fields = {
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
                "result": None,
            }
            if found is not None:
                # What failed for our own reasons, or was cancelled, may be asked for again.
                connection.execute(update(TASKS).where(TASKS.c.key == given.key).values(fields))
            else:
                packed = zlib.compress(given.request, 1)
                fields |= {"key": given.key, "problem": given.problem, "request": packed}
                connection.execute(insert(TASKS).values(fields))
            made = _task(connection, given.key)
            assert made is not None
            return made

        return self._done(work)

    def begin(self, key: str) -> Future[bool]:
        """Note that a task is being judged; `False` where it does not wait any more."""

        def work(connection: Connection) -> bool:
            waits = (TASKS.c.key == key) & (TASKS.c.state == "queued")
            values = {"state": "running", "started_at": time.time()}
            found = update(TASKS).where(waits).values(attempts=TASKS.c.attempts + 1, **values)
            return bool(connection.execute(found).rowcount)

        return self._done(work)

    def finish(self, key: str, verdict: str, result: bytes) -> Future[None]:
        """Store a result; what was cancelled meanwhile stays cancelled."""
        packed = zlib.compress(result, 1)
        return self._end(key, {"state": "done", "verdict": verdict, "result": packed})

    def fail(self, key: str, error: str) -> Future[None]:
        """Note that our own side could not judge a task."""
        return self._end(key, {"state": "failed", "error": error[:4000]})

    def _end(self, key: str, values: dict[str, Any]) -> Future[None]:
        def work(connection: Connection) -> None:
            open_ = (TASKS.c.key == key) & TASKS.c.state.in_(("queued", "running"))
            values["ended_at"] = time.time()
            connection.execute(update(TASKS).where(open_).values(values))

        return self._done(work)

    def requeue(self, key: str, error: str) -> Future[None]:
        """Let a task wait again, after a failure of our own."""

        def work(connection: Connection) -> None:
            runs = (TASKS.c.key == key) & (TASKS.c.state == "running")
            connection.execute(update(TASKS).where(runs).values(state="queued", error=error[:4000]))

        return self._done(work)

    def cancel(self, client: str, key: str) -> Future[bool]:
        """Cancel a task that has not ended; `False` where it has, or others want it too."""

        def work(connection: Connection) -> bool:
            mine = (OWNERS.c.client == client) & (OWNERS.c.key == key)
            others = select(func.count()).where((OWNERS.c.key == key) & (OWNERS.c.client != client))
            if connection.execute(others).scalar():
                connection.execute(delete(OWNERS).where(mine))
                return False
            open_ = (TASKS.c.key == key) & TASKS.c.state.in_(("queued", "running"))
            values = {"state": "cancelled", "ended_at": time.time()}
            return bool(connection.execute(update(TASKS).where(open_).values(values)).rowcount)

        return self._done(work)

    def prune(self, before: float, most: int | None = None, batch: int = 500) -> Future[int]:
        """Forget tasks that ended before a time, and the oldest beyond the `most` that ended last.

        At most `batch` of them, so that others write in between; return how many. What waits or is
        being judged stays, however old.
        """

        def work(connection: Connection) -> int:
            # By exclusion, so that SQLite goes by the index of the times.
            ended = TASKS.c.state.not_in(("queued", "running"))
            limit = before
            if most is not None:
                has_ended = TASKS.c.ended_at != None  # noqa: E711 - SQL
                times = select(TASKS.c.ended_at).where(has_ended)
                times = times.order_by(TASKS.c.ended_at.desc())
                # What ended just after the oldest that is kept too many.
                spare = connection.execute(times.offset(most).limit(1)).scalar()
                limit = before if spare is None else max(before, math.nextafter(spare, math.inf))
            old = select(TASKS.c.key).where(ended & (TASKS.c.ended_at < limit)).limit(batch)
            keys = [str(key) for key in connection.execute(old).scalars()]
            for table in (NAMES, OWNERS, TASKS):
                connection.execute(delete(table).where(table.c.key.in_(keys)))
            return len(keys)

        return self._done(work)

    def recover(self) -> Future[list[Waiting]]:
        """Let everything wait that was being judged when the server died; return what waits."""

        def work(connection: Connection) -> list[Waiting]:
            runs = TASKS.c.state == "running"
            connection.execute(update(TASKS).where(runs).values(state="queued"))
            columns = [TASKS.c[name] for name in Waiting.__dataclass_fields__]
            found = select(*columns).where(TASKS.c.state == "queued").order_by(TASKS.c.sequence)
            return [Waiting(**row._mapping) for row in connection.execute(found)]

        return self._done(work)

    def owns(self, client: str, key: str) -> bool:
        """Tell whether a client has asked for a task."""
        with self._engine.connect() as connection:
            return _owns(connection, client, key)

    def task(self, key: str) -> Task | None:
        """Return a task."""
        with self._engine.connect() as connection:
            return _task(connection, key)

    def named(self, client: str, name: str) -> str | None:
        """Return the key of what a client calls so."""
        own = (NAMES.c.client == client) & (NAMES.c.name == name)
        with self._engine.connect() as connection:
            found: str | None = connection.execute(select(NAMES.c.key).where(own)).scalar()
        return found

    def request(self, key: str) -> bytes:
        """Return a task's request."""
        return self._blob(key, "request")

    def result(self, key: str) -> bytes:
        """Return a task's report; empty where there is none."""
        return self._blob(key, "result")

    def _blob(self, key: str, name: str) -> bytes:
        with self._engine.connect() as connection:
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
        with self._engine.connect() as connection:
            rows = connection.execute(wanted.order_by(TASKS.c.sequence).limit(limit))
            return [Task(**row._mapping) for row in rows]

    def counts(self) -> dict[str, int]:
        """Return how many tasks there are in each state."""
        wanted = select(TASKS.c.state, func.count().label("count")).group_by(TASKS.c.state)
        with self._engine.connect() as connection:
            rows = connection.execute(wanted).mappings()
            return {str(row["state"]): int(row["count"]) for row in rows}

    def close(self) -> None:
        """Write what is asked for, and close the file."""
        self._asked.put(None)
        self._thread.join()
        self._engine.dispose()


def _owns(connection: Connection, client: str, key: str) -> bool:
    mine = (OWNERS.c.client == client) & (OWNERS.c.key == key)
    return connection.execute(select(OWNERS.c.key).where(mine)).first() is not None


def _task(connection: Connection, key: str) -> Task | None:
    row = connection.execute(select(*SHOWN).where(TASKS.c.key == key)).first()
    return None if row is None else Task(**row._mapping)
