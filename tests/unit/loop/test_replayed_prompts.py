"""Prompts made again from a log: word for word, and without code of a later step."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.search.system_runs import strategies
from tests import sample_reports as reports
from tests.unit.loop.test_driver import BEGUN
from tests.unit.loop.test_rollout import PROBLEM, environment_of, settings_of
from tilewright.loop.candidate_text import code_of
from tilewright.loop.driver import drive
from tilewright.loop.policies.base import digest_of
from tilewright.loop.policies.scripted import Scripted
from tilewright.loop.prompts import messages_of
from tilewright.loop.prompts.shown_programs import fenced
from tilewright.loop.replayed_prompts import documents_of, replayed_material
from tilewright.loop.rollout import RolloutWorker
from tilewright.loop.run_state import begin_session
from tilewright.problems.loader import BUNDLED
from tilewright.records.event_log import EventLog, read_events

TRITON = (BUNDLED / "softmax" / "candidates" / "triton_rows.py").read_text()
ON_SPACES = {"random"}
"""Strategies that write programs of a space and run on nothing else."""


def reply_of(messages: object, ask: Any) -> str:
    del messages
    if ask.choices:
        return "1"
    # A Triton program has regions for actions, and a comment of its own makes it another program.
    return "words" if ask.role == "say" else fenced(f"# program {ask.sample}-{ask.turn}.\n{TRITON}")


@pytest.mark.parametrize("strategy", [name for name in strategies() if name not in ON_SPACES])
def test_every_prompt_is_the_recorded_one_and_shows_nothing_of_later_turns(tmp_path, strategy):
    words = (f"loop.strategy={strategy}", "loop.turns=12", "loop.samples=2")
    settings = settings_of(*words, "loop.knowledge=bundled")
    session = begin_session(tmp_path, BEGUN, [PROBLEM], settings)
    script = [reports.correct() if n % 3 else reports.incorrect() for n in range(60)]
    environment = environment_of(tmp_path, *script, settings=settings)
    worker = RolloutWorker(environment, Scripted(reply_of), {PROBLEM.id: PROBLEM}, session.strategy)
    with EventLog(tmp_path) as log:
        list(drive(session.strategy, worker.play, log, max_concurrency=3))
    problems = {PROBLEM.id: PROBLEM}
    again = list(
        replayed_material(
            read_events(tmp_path), problems.get, lambda digests: documents_of(tmp_path, digests)
        )
    )
    assert len(again) > 8
    texts = ["\n".join(item.text for item in messages_of(found)) for _, found in again]
    assert [digest_of(messages_of(found)) for _, found in again] == [t.prompt for t, _ in again]
    for place, text in enumerate(texts):
        for turn, _ in again[place:]:
            if turn.ask.sample == again[place][0].ask.sample and turn.source:
                assert code_of(turn).splitlines()[0] not in text
    assert any("# program" in text for text in texts) or strategy in ("best_of_n", "autotriton")
