"""The tables of the server's store, and their rows as records."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Column, Float, Index, Integer, LargeBinary, MetaData, Table, Text

__all__ = ["BY_END", "META", "NAMES", "OWNERS", "SHOWN", "TASKS", "Submitted", "Task"]

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
