"""Changes of many tasks at once: deletion of old ones, and a restart on another device."""

from __future__ import annotations

import math

from sqlalchemy import Connection, delete, insert, select

from tilewright.serve.store import queries as sql
from tilewright.serve.store.tables import CARRIED, NAMES, OWNERS, SERVED, TASKS


def prune(connection: Connection, before: float, most: int | None, batch: int) -> int:
    """Delete at most `batch` tasks that ended before a time, or exceed `most`; return how many."""
    # `not_in`: with `in`, SQLite would not use the index of the end times.
    ended = TASKS.c.state.not_in(("queued", "running"))
    limit = before
    if most is not None:
        has_ended = TASKS.c.ended_at != None  # noqa: E711 - SQL
        times = select(TASKS.c.ended_at).where(has_ended)
        times = times.order_by(TASKS.c.ended_at.desc())
        # The end time of the newest task beyond the limit.
        spare = connection.execute(times.offset(most).limit(1)).scalar()
        limit = before if spare is None else max(before, math.nextafter(spare, math.inf))
    old = select(TASKS.c.key).where(ended & (TASKS.c.ended_at < limit)).limit(batch)
    keys = [str(key) for key in connection.execute(old).scalars()]
    for table in (NAMES, OWNERS, CARRIED, TASKS):
        connection.execute(delete(table).where(table.c.key.in_(keys)))
    return len(keys)


def carry_over(connection: Connection, by: str) -> None:
    """Flag the tasks that are still open if the previous server used another device or version.

    Their key names the old device, but they will be evaluated on this one. So a later request for
    the old device must be evaluated again.
    """
    if connection.execute(select(SERVED.c.by)).scalar() == by:
        return
    waits = select(TASKS.c.key).where(sql.IS_OPEN)
    into = insert(CARRIED).prefix_with("OR IGNORE").from_select(["key"], waits)
    connection.execute(into)
    connection.execute(delete(SERVED))
    connection.execute(insert(SERVED).values(by=by))
