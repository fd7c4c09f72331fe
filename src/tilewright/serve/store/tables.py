"""The tables of the server's store, and their rows as records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

BUSY_MS = 20_000
META = sa.MetaData()
TASKS = sa.Table(
    "tasks",
    META,
    sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("client", sa.Text, nullable=False),
    sa.Column("problem", sa.Text, nullable=False),
    sa.Column("priority", sa.Integer, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False, default=0),
    sa.Column("submitted_at", sa.Float, nullable=False),
    sa.Column("started_at", sa.Float),
    sa.Column("ended_at", sa.Float),
    sa.Column("deadline", sa.Float),
    sa.Column("verdict", sa.Text),
    sa.Column("error", sa.Text),
    # Name of the exception, for clients that raise it again.
    sa.Column("error_kind", sa.Text),
    sa.Column("request", sa.LargeBinary, nullable=False),
    sa.Column("result", sa.LargeBinary),
)
sa.Index("by_state", TASKS.c.state, TASKS.c.sequence)
BY_END = sa.Index("by_end", TASKS.c.ended_at)
NAMES = sa.Table(
    "names",
    META,
    sa.Column("client", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, nullable=False),
    # Digest of what was submitted, before the server's own settings came into the key.
    sa.Column("given", sa.Text),
)
OWNERS = sa.Table(
    "owners",
    META,
    sa.Column("client", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
)
sa.Index("by_key", OWNERS.c.key)
SERVED = sa.Table("served", META, sa.Column("by", sa.Text, primary_key=True))
"""One row: the device model and the version that evaluate now."""
CARRIED = sa.Table("carried", META, sa.Column("key", sa.Text, primary_key=True))
"""Flagged tasks: an earlier server accepted them for another device model or version."""

LATER_COLUMNS = (NAMES.c.given, TASKS.c.error_kind)
"""Columns of texts that the first version of the file lacks."""


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
    error_kind: str | None = None
    """Name of the exception in `tilewright.errors`; `None` also where it is an internal error."""
    sequence: int = 0

    @property
    def is_open(self) -> bool:
        """Whether the task has not ended."""
        return self.state in ("queued", "running")

    @property
    def begins_anew(self) -> bool:
        """Whether another submission starts the task again, since the cause may be gone."""
        return self.state in ("failed", "cancelled") or self.verdict == "unjudged"


SHOWN = [TASKS.c[name] for name in Task.__dataclass_fields__]


@dataclass(frozen=True)
class Submitted(Task):
    """A new task, and the rest of its submission."""

    request: bytes = b""
    name: str | None = None
    """The client's name for the task."""
    given: str = ""
    """Digest of the request as the client sent it."""


def open_engine(path: Path) -> sa.Engine:
    """Open or create a store's file; a file of an earlier version gets its missing columns."""
    engine = sa.create_engine(f"sqlite:///{path}")
    sa.event.listen(engine, "connect", _connected)
    META.create_all(engine)
    BY_END.create(engine, checkfirst=True)
    for column in LATER_COLUMNS:
        table = column.table.name
        if column.name not in {found["name"] for found in sa.inspect(engine).get_columns(table)}:
            with engine.begin() as connection:
                connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {column.name} TEXT")
    return engine


def _connected(connection: Any, _: object) -> None:  # noqa: ANN401 - a DBAPI connection
    # The driver would commit each statement; the store begins its transactions itself.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={BUSY_MS}"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
