"""Actions of real searches by `mtmc`, whose decider gives log-probabilities."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from tests import sample_reports as reports
from tests.unit.loop.test_driver import BEGUN
from tests.unit.loop.test_replayed_prompts import reply_of
from tests.unit.loop.test_rollout import PROBLEM, environment_of, settings_of
from tilewright.loop.driver import drive
from tilewright.loop.policies.scripted import Scripted
from tilewright.loop.rollout import RolloutWorker
from tilewright.loop.run_state import begin_session, lines_of
from tilewright.records.event_log import EventLog
from tilewright.rl.data.exports import ExportPlan, export


class Decider(Scripted):
    """A model that finds each choice likely or not by a digest. Lifetime: one run."""

    def score_choices(self, messages: Any, choices: Any) -> tuple[tuple[float, ...], ...]:
        text = messages[-1].text
        digests = [hashlib.sha256(f"{text}{choice}".encode()).digest() for choice in choices]
        return tuple((-digest[0] / 64, -digest[1] / 64) for digest in digests)


@pytest.mark.parametrize("restart", ["initial", "best"])
@pytest.mark.parametrize("decision", ["argmax", "sample"])
def test_each_row_names_the_action_that_the_search_carried_out(tmp_path, decision, restart):
    words = (f"loop.options.decision={decision}", f"loop.options.restart={restart}")
    settings = settings_of("loop.strategy=mtmc", "loop.turns=60", "loop.samples=2", *words)
    session = begin_session(tmp_path, BEGUN, [PROBLEM], settings)
    script = [reports.correct() if n % 3 else reports.incorrect() for n in range(120)]
    environment = environment_of(tmp_path, *script, settings=settings)
    worker = RolloutWorker(environment, Decider(reply_of), {PROBLEM.id: PROBLEM}, session.strategy)
    with EventLog(tmp_path) as log:
        turns = list(drive(session.strategy, worker.play, log, max_concurrency=2))
    target = tmp_path / "rows.jsonl"
    export(ExportPlan((str(tmp_path),), target, format="actions"), pytest.fail)
    rows = [json.loads(line) for line in lines_of(target)]
    by_id = {turn.ask.id: turn for turn in turns}
    decided = [turn for turn in turns if turn.choice is not None]
    # At most the last decision of each trajectory has no known consequence.
    assert len(decided) - 2 <= len(rows) <= len(decided)
    assert any(row["stop"] for row in rows)
    changed = 0
    for row in rows:
        said = by_id[row["id"]].choice
        changed += row["taken"] != said.taken
        assert row["logprobs"] == [list(part) for part in said.logprobs]
        if row["child"] is None:
            assert row["stop"]
            continue
        ask = by_id[row["child"]].ask
        assert ask.instruction == row["choices"][row["taken"]]
        assert ask.parents == by_id[row["id"]].ask.parents
    assert bool(changed) == (decision == "sample")
    assert all(row["prompt_as_recorded"] for row in rows)
    assert max(row["step"] for row in rows) < 8
