"""What the store does to many tasks at once: it forgets old ones, and takes over another's."""

from __future__ import annotations

import math

from sqlalchemy import Connection, delete, insert, select

from tilewright.serve.store import queries as sql
from tilewright.serve.store.tables import CARRIED, NAMES, OWNERS, SERVED, TASKS

__all__ = ["carry_over", "prune"]


def prune(connection: Connection, before: float, most: int | None, batch: int) -> int:
    """Forget at most `batch` tasks that ended before a time, or are too many; return how many."""
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
    for table in (NAMES, OWNERS, CARRIED, TASKS):
        connection.execute(delete(table).where(table.c.key.in_(keys)))
    return len(keys)


def carry_over(connection: Connection, by: str) -> None:
    """Mark what waits as accepted by another, if the last server judged on something else.

    Its report says on what it was made; but it is no answer to who asks that other for the same.
    """
    if connection.execute(select(SERVED.c.by)).scalar() == by:
        return
    waits = select(TASKS.c.key).where(sql.IS_OPEN)
    into = insert(CARRIED).prefix_with("OR IGNORE").from_select(["key"], waits)
    connection.execute(into)
    connection.execute(delete(SERVED))
    connection.execute(insert(SERVED).values(by=by))
