"""The tables of the server's store, and their rows as records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    Engine,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    create_engine,
    event,
    inspect,
)

BUSY_MS = 20_000
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
    # Digest of what was submitted, before the server's own settings came into the key.
    Column("given", Text),
)
OWNERS = Table(
    "owners",
    META,
    Column("client", Text, primary_key=True),
    Column("key", Text, primary_key=True),
)
Index("by_key", OWNERS.c.key)
SERVED = Table("served", META, Column("by", Text, primary_key=True))
"""One row: the device model and the version that evaluate now."""
CARRIED = Table("carried", META, Column("key", Text, primary_key=True))
"""Flagged tasks: an earlier server accepted them for another device model or version."""


@dataclass(frozen=True)
class Task:
    """One task, without its request and result."""

    key: str
    client: str
    problem: str
    priority: int
    submitted_at: float
    state: str = "queued"
    attempts: int = 0
    started_at: float | None = None
    ended_at: float | None = None
    deadline: float | None = None
    verdict: str | None = None
    error: str | None = None
    sequence: int = 0

    @property
    def is_open(self) -> bool:
        """Whether the task has not ended."""
        return self.state in ("queued", "running")

    @property
    def begins_anew(self) -> bool:
        """Whether another submission starts the task again.

        It does after an internal error or a cancellation, and without a verdict: the reason for
        that may be gone.
        """
        return self.state in ("failed", "cancelled") or self.verdict == "unjudged"


SHOWN = [TASKS.c[name] for name in Task.__dataclass_fields__]


@dataclass(frozen=True)
class Submitted:
    """A submission for the store."""

    key: str
    client: str
    problem: str
    priority: int
    request: bytes
    name: str | None = None
    """The client's name for the task."""
    given: str = ""
    """Digest of the request as the client sent it."""
    deadline: float | None = None


def open_engine(path: Path) -> Engine:
    """Open or create a store's file; a file of an earlier version gets its missing columns.

    Raises:
        SQLAlchemyError: the file cannot be opened.
    """
    engine = create_engine(f"sqlite:///{path}")
    event.listen(engine, "connect", _connected)
    META.create_all(engine)
    BY_END.create(engine, checkfirst=True)
    if "given" not in {column["name"] for column in inspect(engine).get_columns("names")}:
        with engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE names ADD COLUMN given TEXT")
    return engine


def _connected(connection: Any, _: object) -> None:  # noqa: ANN401 - a DBAPI connection
    # The driver would commit each statement; the store begins its transactions itself.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={BUSY_MS}"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
