"""The statements of the store for one task, built once: building takes longer than running.

SQLAlchemy requires that the parameters of an UPDATE are not named as columns.
"""

from __future__ import annotations

from sqlalchemy import bindparam, delete, insert, select, update

from tilewright.serve.store.tables import CARRIED, NAMES, OWNERS, SHOWN, TASKS

_KEY = TASKS.c.key == bindparam("of_key")
IS_OPEN = (TASKS.c.state == "queued") | (TASKS.c.state == "running")
"""Condition: the task has not ended."""
TASK = select(*SHOWN).where(_KEY)
_OWN_NAME = (NAMES.c.client == bindparam("of_client")) & (NAMES.c.name == bindparam("of_name"))
NAMED = select(NAMES.c.key, NAMES.c.given).where(_OWN_NAME)
RENAME = update(NAMES).where(_OWN_NAME).values(key=bindparam("to_key"), given=bindparam("to_given"))
ADD_OWNER = insert(OWNERS).prefix_with("OR IGNORE")
_START = update(TASKS).where(_KEY, TASKS.c.state == "queued").returning(*SHOWN, TASKS.c.request)
BEGIN = _START.values(state="running", started_at=bindparam("now"), attempts=TASKS.c.attempts + 1)
_END = update(TASKS).where(_KEY, IS_OPEN).values(ended_at=bindparam("now"))
FAILED = _END.values(state="failed", error=bindparam("said"), error_kind=bindparam("kind"))
# An earlier attempt may have left an error.
DONE = _END.values(state="done", verdict=bindparam("said"), result=bindparam("packed"), error=None)
LATE = FAILED.where(TASKS.c.deadline < bindparam("now"))
CARRY_ON = delete(CARRIED).where(CARRIED.c.key == bindparam("of_key"))
