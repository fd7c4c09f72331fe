"""The driver: logged events, resumed runs, and no evaluation twice."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import sample_reports as reports
from tilewright.errors import ConfigError, InfrastructureError, ProblemError, RecordError
from tilewright.loop.answer_evaluator import MAX_LOST_EVALUATIONS, RETRIES, AnswerEvaluator
from tilewright.loop.driver import drive, replay
from tilewright.loop.run_state import begin, resume
from tilewright.loop.strategies.base import FixedList
from tilewright.problems.loader import find_problem
from tilewright.records import EvalReport, EvalRequest, SourceFile
from tilewright.records.event_log import EVENTS, EventLog, read_events, turns_of
from tilewright.records.events import (
    Ask,
    EvalSummary,
    RequestsIssued,
    RunStarted,
    Turn,
    TurnFinished,
)

BEGUN = RunStarted(
    kind="bench", name="x", problems="bundled", protocols=("strict",), evaluator="0", device="cpu"
)


def asks(count: int) -> list[Ask]:
    return [Ask(id=f"p{number}#0", problem=f"p{number}") for number in range(count)]


def turn(ask: Ask) -> Turn:
    return Turn(ask=ask, judgements=(EvalSummary(protocol="strict", verdict="correct"),))


def folder_of(tmp_path: Path, count: int) -> Path:
    begin(tmp_path, BEGUN, [find_problem("softmax")], dict.fromkeys(asks(count), ()))
    return tmp_path


def told(folder: Path) -> list[str]:
    return [event.turn.ask.id for event in read_events(folder) if isinstance(event, TurnFinished)]


def test_every_request_finishes_once_and_is_logged_in_order(tmp_path):
    folder = folder_of(tmp_path, 7)
    with EventLog(folder) as log:
        made = list(drive(resume(folder).strategy, turn, log, max_concurrency=3))
    assert sorted(item.ask.id for item in made) == [ask.id for ask in asks(7)]
    assert told(folder) == [item.ask.id for item in made]
    seen: set[str] = set()
    for event in read_events(folder):
        if isinstance(event, RequestsIssued):
            seen |= {ask.id for ask in event.asks}
        if isinstance(event, TurnFinished):
            assert event.turn.ask.id in seen


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 12), st.integers(1, 4), st.data())
def test_a_run_cut_off_anywhere_resumes_to_the_same_end(tmp_path_factory, count, width, data):
    folder = folder_of(tmp_path_factory.mktemp("run"), count)
    with EventLog(folder) as log:
        list(drive(resume(folder).strategy, turn, log, max_concurrency=width))
    content = (folder / EVENTS).read_bytes()
    first = content.index(b"\n") + 1
    # A part of it, since its length is not the same each time: events have times and durations.
    part = data.draw(st.fractions(0, 1, max_denominator=10_000))
    cut = first + int(part * (len(content) - first))
    (folder / EVENTS).write_bytes(content[:cut])
    before = set(told(folder))
    session, played = resume(folder), []

    def play(ask: Ask) -> Turn:
        played.append(ask.id)
        return turn(ask)

    with EventLog(folder) as log:
        list(drive(session.strategy, play, log, max_concurrency=width, waiting=session.waiting))
    assert sorted(told(folder)) == sorted(ask.id for ask in asks(count))
    assert not before & set(played)
    assert len(played) == len(set(played))


def test_a_strategy_that_requests_other_turns_is_not_resumed(tmp_path):
    folder = folder_of(tmp_path, 3)
    with EventLog(folder) as log:
        list(drive(resume(folder).strategy, turn, log, max_concurrency=1))
    with pytest.raises(RecordError, match="restore its settings"):
        replay(FixedList(asks(3)[::-1]), read_events(folder))


def test_a_failure_stops_other_turns_and_keeps_finished_ones(tmp_path):
    folder, stopped = folder_of(tmp_path, 6), threading.Event()

    def play(ask: Ask) -> Turn:
        if ask.id == "p2#0":
            raise ConfigError("the disk is full")
        if ask.id > "p2#0":
            assert stopped.wait(10)
        return turn(ask)

    with EventLog(folder) as log, pytest.raises(ConfigError, match="disk"):
        list(drive(resume(folder).strategy, play, log, max_concurrency=2, stop=stopped.set))
    # The fourth may have been under way, and ends when it is stopped: what ended is kept.
    assert set(told(folder)) <= {"p0#0", "p1#0", "p3#0"}
    assert stopped.is_set()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"event": "turn_finished"}\n', "events.jsonl:2"),
        ("not json\n", "events.jsonl:2"),
        ('{"event": "run_started", "schema_version": 9}\n', "events.jsonl:2"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, text, says):
    folder = folder_of(tmp_path, 1)
    with open(folder / EVENTS, "a", encoding="utf-8") as file:
        file.write(text)
    with pytest.raises(RecordError, match=says):
        resume(folder)


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(RecordError, match="no run: it has no events"):
        resume(tmp_path)
    (tmp_path / EVENTS).write_text("")
    with pytest.raises(RecordError, match="first line of its event log is missing"):
        resume(tmp_path)
    folder = folder_of(tmp_path / ".", 2)
    (folder / "candidates.jsonl").write_text('{"ask": 1}\n')
    with pytest.raises(RecordError, match=r"candidates.jsonl:1"):
        resume(folder)


class Bench:
    """An evaluator that answers from a script, and counts."""

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.calls = 0

    def __call__(self, request: EvalRequest) -> EvalReport:
        self.calls += 1
        item = self.script.pop(0) if self.script else reports.correct()
        if isinstance(item, Exception):
            raise item
        return item.model_copy(update={"request": request})


def judged(tmp_path: Path, bench: Bench) -> EvalSummary:
    tmp_path.mkdir(exist_ok=True)
    evaluator = AnswerEvaluator(tmp_path, bench, retry_delay_s=0.0)
    return evaluator.evaluate(asks(1)[0], reports.request())[0]


def test_a_summary_holds_the_main_fields_of_its_report(tmp_path):
    made = judged(tmp_path, Bench())
    assert (made.verdict, made.speedup, made.low, made.high) == ("correct", 1.42, 1.36, 1.47)
    assert made.labels == ("library_call",)
    assert json.loads((tmp_path / made.report).read_text())["verdict"] == "correct"


def test_work_that_was_judged_before_a_kill_is_not_repeated(tmp_path):
    first, second = Bench(), Bench()
    assert judged(tmp_path, first) == judged(tmp_path, second)
    assert (first.calls, second.calls) == (1, 0)


def test_different_work_under_the_same_id_is_judged(tmp_path):
    judged(tmp_path, Bench())
    candidate = reports.request().candidate
    files = (SourceFile(path="fast.py", text="another"),)
    other = reports.request().model_copy(
        update={"candidate": candidate.model_copy(update={"files": files})}
    )
    bench = Bench()
    AnswerEvaluator(tmp_path, bench).evaluate(asks(1)[0], other)
    assert bench.calls == 1


def test_only_infrastructure_failures_are_retried(tmp_path):
    lost = InfrastructureError("the supervisor was lost")
    bench = Bench(*[lost] * RETRIES)
    assert judged(tmp_path, bench).verdict == "correct"
    assert bench.calls == RETRIES + 1
    unusable = Bench(ProblemError("its reference raises"))
    made = judged(tmp_path / "x", unusable)
    assert (made.verdict, unusable.calls) == ("unjudged", 1)
    assert made.reason == "its reference raises"
    assert made.report == ""


def test_a_lasting_infrastructure_failure_is_unjudged(tmp_path):
    bench = Bench(*[InfrastructureError("no room")] * (RETRIES + 1))
    made = judged(tmp_path, bench)
    assert (made.verdict, made.speedup) == ("unjudged", None)


def test_an_ending_run_retries_nothing(tmp_path):
    bench = Bench(*[InfrastructureError("no room")] * (RETRIES + 1))
    judge = AnswerEvaluator(tmp_path, bench, retry_delay_s=60.0)
    judge.stop()
    # What is not judged any more is asked again when the run goes on: it has no verdict.
    with pytest.raises(InfrastructureError, match="the run ends"):
        judge.evaluate(asks(1)[0], reports.request())
    assert bench.calls == 0


def test_a_broken_machine_ends_the_run_without_spending_budget(tmp_path):
    bench = Bench(*[InfrastructureError("quarantined")] * 99)
    judge = AnswerEvaluator(tmp_path, bench, retry_delay_s=0.0)
    for _ in range(MAX_LOST_EVALUATIONS - 1):
        assert judge.evaluate(asks(1)[0], reports.request())[0].verdict == "unjudged"
    with pytest.raises(InfrastructureError, match="quarantined"):
        judge.evaluate(asks(1)[0], reports.request())


def test_two_processes_cannot_write_one_run(tmp_path):
    folder = folder_of(tmp_path, 1)
    with EventLog(folder), pytest.raises(ConfigError, match="another process works on this run"):
        EventLog(folder)
    EventLog(folder).close()


def test_unicode_line_separators_stay_part_of_a_source(tmp_path):
    problem = find_problem("softmax")
    odd = problem.source.model_copy(update={"text": problem.source.text + "# \u2028 \x85\n"})
    made = problem.model_copy(update={"source": odd})
    begin(tmp_path, BEGUN, [made], {asks(1)[0]: (odd,)})
    assert resume(tmp_path).problems == [made]


def test_turns_lost_to_infrastructure_failures_are_repeated_and_count_once(tmp_path):
    folder = folder_of(tmp_path, 3)

    def lost(ask: Ask) -> Turn:
        if ask.id != "p1#0":
            return turn(ask)
        unjudged = EvalSummary(protocol="strict", verdict="unjudged", reason="the judge was lost")
        return Turn(ask=ask, judgements=(unjudged,))

    with EventLog(folder) as log:
        list(drive(resume(folder).strategy, lost, log, max_concurrency=1))
    again = resume(folder)
    assert [ask.id for ask in again.waiting] == ["p1#0"]
    assert [item.ask.id for item in again.finished] == ["p0#0", "p2#0"]
    with EventLog(folder, again.log_bytes) as log:
        list(drive(again.strategy, turn, log, max_concurrency=1, waiting=again.waiting))
    found = turns_of(read_events(folder))
    assert [(item.ask.id, item.judgements[0].verdict) for item in found] == [
        ("p0#0", "correct"), ("p1#0", "correct"), ("p2#0", "correct")
    ]  # fmt: skip
    assert resume(folder).waiting == []


def test_a_log_that_grew_since_it_was_read_is_not_resumed(tmp_path):
    folder = folder_of(tmp_path, 3)
    ours, theirs = resume(folder), resume(folder)
    with EventLog(folder, theirs.log_bytes) as log:
        list(drive(theirs.strategy, turn, log, max_concurrency=1))
    before = (folder / EVENTS).read_bytes()
    with pytest.raises(ConfigError, match="another process has just resumed"):
        EventLog(folder, ours.log_bytes)
    assert (folder / EVENTS).read_bytes() == before


def test_a_damaged_problem_is_named_by_file_and_line(tmp_path):
    folder = folder_of(tmp_path, 1)
    with open(folder / "problems.jsonl", "a") as file:
        file.write('{"id": 3}\n')
    with pytest.raises(RecordError, match=r"problems.jsonl:2: "):
        resume(folder)


def test_turns_that_end_with_the_last_read_one_are_on_disk(tmp_path):
    folder, together = folder_of(tmp_path, 6), threading.Barrier(3)

    def play(ask: Ask) -> Turn:
        together.wait()
        return turn(ask)

    with EventLog(folder) as log:
        turns = drive(resume(folder).strategy, play, log, max_concurrency=3)
        next(turns)
        turns.close()
    assert sorted(told(folder)) == [ask.id for ask in asks(3)]
