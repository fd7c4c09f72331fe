"""The rows of a folder of runs: sums of their logs, while the logs grow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import sample_reports
from tilewright.records.event_log import EVENTS, EventLog
from tilewright.records.events import (
    Ask,
    EvalSummary,
    Reply,
    RunStarted,
    SearchStopped,
    Stepped,
    Turn,
    TurnFinished,
)
from tilewright.reports.run_list import RunList


def begin(folder: Path, **changes: object) -> EventLog:
    """Begin a run; its log is open, so the run is in progress."""
    folder.mkdir()
    log = EventLog(folder)
    begun = {
        "kind": "optimize",
        "name": "greedy",
        "problems": "softmax",
        "protocols": ("strict",),
        "evaluator": "0.1.0",
        "device": "a processor",
    }
    log.append(RunStarted.model_validate({**begun, **changes}))
    return log


def finished(turn: int, speedup: float | None) -> TurnFinished:
    """Return a turn that is correct with this speed-up, or failed."""
    found = (
        EvalSummary(protocol="strict", verdict="failed", seconds=1.0)
        if speedup is None
        else EvalSummary(protocol="strict", verdict="correct", speedup=speedup, seconds=2.0)
    )
    ask = Ask(id=f"softmax#0.{turn}", problem="softmax", turn=turn)
    reply = Reply(text="def softmax(x): ...", prompt_tokens=70, reply_tokens=30, usd=0.25)
    return TurnFinished(turn=Turn(ask=ask, reply=reply, judgements=(found,)))


def test_a_row_sums_up_its_log(tmp_path):
    with begin(tmp_path / "20261101-123000-abcd") as log:
        for turn, speedup in enumerate((None, 1.25, 1.5, 1.1)):
            log.append(finished(turn, speedup))
        runs = RunList(tmp_path)
        assert runs.look()
        (row,) = runs.rows()
        assert row["state"] == "running"
    assert row["begun_at"] == "2026-11-01 12:30 UTC"
    assert (row["kind"], row["by"], row["problems"]) == ("optimize", "greedy", "softmax")
    assert (row["turns"], row["verdicts"]) == (4, {"failed": 1, "correct": 3})
    assert (row["speedup"], row["best_problem"]) == (1.5, "softmax")
    assert (row["tokens"], row["usd"], row["device_s"]) == (400, 1.0, 7.0)


def test_only_rows_with_news_are_returned(tmp_path):
    with begin(tmp_path / "one") as log, begin(tmp_path / "two"):
        runs = RunList(tmp_path)
        runs.look()
        known = runs.version
        runs.look()
        assert runs.rows(known) == []
        log.append(finished(0, 2.0))
        runs.look()
        assert [(row["name"], row["turns"]) for row in runs.rows(known)] == [("one", 1)]
        log.append(SearchStopped(reason="budget"))
    known = runs.version
    runs.look()
    assert {row["name"]: row["state"] for row in runs.rows(known)} == {
        "one": "stopped: budget",
        "two": "not running",
    }


def state_of(folder: Path, name: str) -> str:
    runs = RunList(folder)
    runs.look()
    return str(next(row["state"] for row in runs.rows() if row["name"] == name))


def test_a_run_that_has_done_all_of_its_work_is_complete(tmp_path):
    with begin(tmp_path / "search") as log:
        log.append(finished(0, 2.0))
        log.append(SearchStopped(reason="nothing to do"))
    assert state_of(tmp_path, "search") == "complete: all turns used"
    with begin(tmp_path / "bench", kind="bench") as log:
        (tmp_path / "bench" / "candidates.jsonl").write_text("{}\n{}\n")
        # The same candidate twice: it was unjudged at first.
        for _ in range(2):
            log.append(finished(0, 2.0))
    assert state_of(tmp_path, "bench") == "not running"
    with EventLog(tmp_path / "bench") as log:
        log.append(finished(1, None))
    assert state_of(tmp_path, "bench") == "complete"
    begin(tmp_path / "sft", kind="sft").close()
    assert state_of(tmp_path, "sft") == "not running"
    (tmp_path / "sft" / "model").mkdir()
    assert state_of(tmp_path, "sft") == "complete"


def test_runs_of_eval_are_listed_with_their_verdict(tmp_path):
    for name, text in (("good", sample_reports.correct().to_json()), ("bad", "damaged")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.json").write_text(text)
    runs = RunList(tmp_path)
    assert runs.look()
    rows = {row["name"]: row for row in runs.rows()}
    assert (rows["good"]["kind"], rows["good"]["state"]) == ("eval", "complete")
    assert rows["good"]["verdicts"] == {"correct": 1}
    assert rows["good"]["speedup"] == pytest.approx(sample_reports.correct().speedup)
    assert (rows["bad"]["state"], rows["bad"]["damaged"]) == ("unreadable", 1)


def test_a_training_shows_its_last_step_and_reward(tmp_path):
    with begin(tmp_path / "rl", kind="rl") as log:
        for step in (1, 2):
            figures = {"reward": step / 4, "loss": 0.1}
            log.append(Stepped(step=step, batch="train", figures=figures))
        runs = RunList(tmp_path)
        runs.look()
    assert [(row["step"], row["reward"]) for row in runs.rows()] == [(2, 0.5)]


def test_half_a_line_waits_for_its_end_and_a_damaged_one_is_counted(tmp_path):
    begin(tmp_path / "one").close()
    path = tmp_path / "one" / EVENTS
    line = finished(0, 2.0).to_json().encode() + b"\n"
    path.write_bytes(path.read_bytes() + b"damaged\n" + line[:40])
    runs = RunList(tmp_path)
    assert runs.look()
    assert [(row["turns"], row["damaged"]) for row in runs.rows()] == [(0, 1)]
    path.write_bytes(path.read_bytes() + line[40:])
    runs.look()
    assert [(row["turns"], row["damaged"]) for row in runs.rows()] == [(1, 1)]


def test_a_log_without_a_beginning_is_unreadable_and_a_replaced_one_is_read_again(tmp_path):
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / EVENTS).write_text("nothing\n")
    runs = RunList(tmp_path)
    runs.look()
    assert [row["state"] for row in runs.rows()] == ["unreadable"]
    (folder / EVENTS).unlink()
    folder.rmdir()
    with begin(folder) as log:
        log.append(finished(0, 3.0))
    runs.look()
    assert [(row["damaged"], row["turns"]) for row in runs.rows()] == [(0, 1)]


def test_a_look_that_is_short_reads_on_at_the_next_one(tmp_path):
    for number in range(3):
        with begin(tmp_path / f"run{number}") as log:
            log.append(finished(0, 1.5))
    runs = RunList(tmp_path)
    assert not runs.look(limit_s=-1.0)
    assert {row["state"] for row in runs.rows()} == {"reading"}
    assert runs.look()
    assert {row["turns"] for row in runs.rows()} == {1}
