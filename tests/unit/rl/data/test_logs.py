"""An event log as the source of rows: which of its turns count."""

from __future__ import annotations

import pytest

from tests.unit.rl.data.test_exports import a_run, exported
from tilewright.records.event_log import EventLog, read_events, turns_of
from tilewright.records.events import TurnFinished


@pytest.mark.parametrize("kind", ["turns", "steps", "groups"])
def test_a_turn_that_was_judged_again_is_exported_once_with_its_last_verdict(tmp_path, kind):
    run = a_run(tmp_path / "run")
    before, lost = exported(run, kind), turns_of(read_events(run))[1]
    judgement = lost.judgements[0].model_copy(update={"verdict": "correct", "speedup": 7.0})
    with EventLog(run) as log:
        log.append(TurnFinished(turn=lost.model_copy(update={"judgements": (judgement,)})))
    after = exported(run, kind)
    names = [row["id"] for row in after]
    assert len(names) == len(set(names))
    assert {row["id"] for row in before} <= set(names)
    answers = [answer for row in after for answer in row.get("answers", [row])]
    (again,) = [answer for answer in answers if answer["id"] == lost.ask.id]
    assert (again["verdict"], again["speedup"]) == ("correct", 7.0)
