"""Turns in the viewer: rows, marks, requests, rebuilt prompts, and turns that nobody judges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.search.system_runs import strategies
from tests import sample_reports as reports
from tests.unit.loop.test_driver import BEGUN
from tests.unit.loop.test_rollout import PROBLEM, environment_of, play, settings_of
from tests.unit.reports.test_html_report import begun
from tests.unit.reports.test_strategy_report import without_judgements
from tests.unit.scoring.test_strategy_table import final, turn_of
from tilewright.loop.driver import drive
from tilewright.loop.policies.scripted import Scripted
from tilewright.loop.prompts.shown_programs import fenced
from tilewright.loop.rollout import RolloutWorker
from tilewright.loop.run_state import begin, begin_session
from tilewright.problems.loader import BUNDLED
from tilewright.records import EvalReport
from tilewright.records.event_log import EventLog
from tilewright.records.events import Choice, RequestsIssued, Turn, TurnFinished
from tilewright.reports.turn_view import Turns, choice_shown
from tilewright.reports.viewer_server import MAX_PAGE_BYTES, exported

TRITON = (BUNDLED / "softmax" / "candidates" / "triton_rows.py").read_text()
ON_SPACES = {"random"}
"""Strategies that write programs of a space and run on nothing else."""


def verdicts() -> list[EvalReport]:
    """Return reports of correct candidates at different speeds, and of wrong ones between them."""
    made: list[EvalReport] = []
    for number in range(40):
        made.append(reports.correct() if number % 3 else reports.incorrect())
    return made


def logged(folder: Path, turns: list[Turn], **changes: Any) -> Turns:
    folder.mkdir()
    begin(folder, begun(protocols=("strict",), **changes), [PROBLEM], {})
    with EventLog(folder) as log:
        log.extend(
            event
            for turn in turns
            for event in (RequestsIssued(limit=1, asks=(turn.ask,)), TurnFinished(turn=turn))
        )
    return Turns(folder)


def reply_of(messages: object, ask: Any) -> str:
    """Return a program that differs for each turn, the number of a choice, or words."""
    del messages
    if ask.choices:
        return "1"
    # A Triton program has regions for actions, and one number more makes it another program.
    return "words" if ask.role == "say" else fenced(f"# {ask.turn}\n{TRITON}")


def played(folder: Path, strategy: str, width: int) -> Turns:
    """Play a search with so many requests at a time: prompts show what was known at the request."""
    words = (f"loop.strategy={strategy}", "loop.turns=16", "loop.knowledge=bundled")
    settings = settings_of(*words)
    session = begin_session(folder, BEGUN, [PROBLEM], settings)
    environment = environment_of(folder, *verdicts(), settings=settings)
    worker = RolloutWorker(environment, Scripted(reply_of), {PROBLEM.id: PROBLEM}, session.strategy)
    with EventLog(folder) as log:
        list(drive(session.strategy, worker.play, log, max_concurrency=width))
    return Turns(folder)


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("strategy", [name for name in strategies() if name not in ON_SPACES])
def test_the_prompt_of_every_strategy_is_rebuilt_word_for_word(tmp_path, strategy, width):
    turns = played(tmp_path, strategy, width)
    assert len(turns.rows) > 4
    shown = [turns.whole(row["n"]) for row in turns.rows]
    assert [item["id"] for item in shown if not item["prompt_as_recorded"]] == []
    asked = [item for item in shown if item["role"] != "measure"]
    assert all(item["prompt"] for item in asked)
    assert exported(turns)


def test_a_changed_document_makes_another_prompt_and_the_page_says_so(tmp_path):
    words = ("loop.strategy=best_of_n", "loop.turns=2", "loop.knowledge=bundled")
    play(tmp_path, reply_of, *words)
    first = Turns(tmp_path).whole(0)
    assert first["documents"]
    assert all(item["title"] and item["text"] for item in first["documents"])
    assert first["prompt_as_recorded"]
    for path in (tmp_path / "documents").glob("*.md"):
        path.write_text(path.read_text() + "more\n")
    again = Turns(tmp_path).whole(0)
    assert not again["prompt_as_recorded"]
    assert [item["title"] for item in again["documents"]] == [
        item["title"] for item in first["documents"]
    ]
    assert {item["text"] for item in again["documents"]} == {""}


def test_trials_change_the_leader_by_the_mean_of_their_candidate(tmp_path):
    trial = {"role": "measure", "parents": ("p#0.1",), "source": "0 1"}
    view = logged(
        tmp_path / "run",
        [
            turn_of(0, 0, 2.0),
            turn_of(0, 1, 3.0),
            # The mean of 3 and 1 is less than 2, so that the first one leads again.
            turn_of(0, 2, 1.0, **trial),
            # And a wrong trial takes a candidate out.
            turn_of(0, 3, None, role="measure", parents=("p#0.0",), source="0 0"),
            turn_of(0, 4, None, **trial),
            final(0, 9.0),
            turn_of(1, 0, 1.0),
        ],
    )
    marks = [row["marks"] for row in view.rows]
    assert ["new leader" in item for item in marks] == [True, True, True, True, False, False, True]
    assert marks[4] == ["leader lost"]
    assert marks[5] == ["final trial"]
    assert [row.get("leader") for row in view.rows] == [0, 1, 0, 1, None, None, 6]
    estimate = view.whole(1)["estimate"]
    assert (estimate["verdict"], estimate["trials"]) == ("incorrect", 3)


def test_turns_without_a_verdict_are_shown_with_what_came_of_them(tmp_path):
    view = logged(tmp_path / "run", without_judgements(0))
    draft, say, choose = view.rows
    assert (draft["verdict"], draft["marks"]) == ("draft", ["refused"])
    assert draft["reason"] == "the reply has no code"
    assert (say["verdict"], choose["verdict"]) == ("say", "choose")
    assert choose["reason"] == "chose b"
    whole = [view.whole(number) for number in range(3)]
    assert whole[0]["refused"] == "the reply has no code"
    assert [item["code"] for item in whole] == ["", "", ""]
    assert [item["report"] for item in whole] == [None] * 3
    assert whole[2]["choice"]["choices"] == ["a", "b"]


def test_a_choice_is_shown_with_its_probabilities_under_three_rules():
    found = choice_shown(("go", "stop here"), Choice(taken=1, logprobs=((-1.0,), (-0.5, -0.7))))
    assert {rule: len(row) for rule, row in found["probabilities"].items()} == {
        "sum": 2,
        "token": 2,
        "word": 2,
    }
    # Two tokens are less likely together than one, and more likely in the mean.
    assert found["probabilities"]["sum"][0] > 0.5 > found["probabilities"]["token"][0]
    assert all(sum(row) == pytest.approx(1) for row in found["probabilities"].values())
    assert choice_shown(("go",), Choice(taken=0, unclear=True))["probabilities"] == {}


def test_a_request_names_its_parents_exemplars_and_the_same_code(tmp_path):
    one, two = turn_of(0, 0, 2.0), turn_of(0, 1, 3.0)
    third = turn_of(
        0, 2, 2.0, parents=("p#0.1", "gone"), shown_turns=("p#0.0", "p#0.1"), operator="mix",
        form="evolve",
    ).model_copy(update={"repeats": "p#0.0"})  # fmt: skip
    view = logged(tmp_path / "run", [one, two, third])
    row, whole = view.rows[2], view.whole(2)
    assert (row["operator"], row["marks"], row["parents"]) == ("mix", ["repeat"], [1])
    assert whole["parents"] == [{"id": "p#0.1", "n": 1}, {"id": "gone", "n": None}]
    assert [item["n"] for item in whole["shown"]] == [0, 1]
    assert whole["repeats"] == [{"id": "p#0.0", "n": 0}]
    assert (whole["form"], whole["role"], whole["parent"]["n"]) == ("evolve", "propose", 1)


def test_an_exported_page_keeps_turning_points_of_a_large_run_and_its_size(tmp_path):
    made = [turn_of(number // 200, number % 200, 1 + number / 1e5) for number in range(40_000)]
    page = exported(logged(tmp_path / "run", made))
    assert len(page) <= MAX_PAGE_BYTES
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    numbers = [row["n"] for row in data["rows"]]
    assert numbers == sorted(numbers)
    assert data["about"]["left_out"] == 40_000 - len(numbers) > 0
    assert set(map(int, data["whole"])) <= set(numbers)
