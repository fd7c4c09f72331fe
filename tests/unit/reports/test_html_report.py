"""The report page: its content, refused inputs, and inert candidate text."""

from __future__ import annotations

import csv
import io
import json
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from tests import sample_reports
from tilewright.errors import ConfigError, RecordError
from tilewright.loop.run_state import begin
from tilewright.records import EvalReport, SourceFile
from tilewright.records.event_log import EventLog
from tilewright.records.events import Ask, EvalSummary, RunStarted, Turn, TurnFinished
from tilewright.reports.csv_markdown import MAX_FLIPS, as_csv, as_markdown
from tilewright.reports.html_report import document, page
from tilewright.reports.loader import MAX_WHOLE_REPORTS, annotate, gather
from tilewright.scoring.summary import group_of, summary_of

HOSTILE = "</script><script>document.title='owned'</script><!-- \u2028"


def begun(**changes: Any) -> RunStarted:
    fields = {
        "kind": "bench",
        "name": "somebody",
        "problems": "kernelbench",
        "protocols": ("strict", "official"),
        "evaluator": "0.1.0",
        "device": "NVIDIA H200",
    }
    return RunStarted(**{**fields, **changes})


def judgement(number: int, protocol: str, **changes: Any) -> EvalSummary:
    verdict = ("correct", "correct", "incorrect", "rejected", "failed", "unjudged")[number % 6]
    fields: dict[str, Any] = {"protocol": protocol, "verdict": verdict, "seconds": 1.0}
    if verdict == "correct":
        speedup = 0.5 + (number % 7) / 2
        fields |= {"speedup": speedup, "low": speedup * 0.9, "high": speedup * 1.1}
    else:
        fields |= {"reason": f"reason {number % 3}", "findings": ("unused_kernel",) * (number % 2)}
    return EvalSummary(**{**fields, **changes})


def turns(count: int, **changes: Any) -> list[Turn]:
    return [
        Turn(
            ask=Ask(
                id=f"kernelbench/level{1 + n % 3}-{n}#0",
                problem=f"kernelbench/level{1 + n % 3}-{n}",
            ),
            judgements=(judgement(n, "strict", **changes), judgement(n, "official", **changes)),
        )
        for n in range(count)
    ]


def a_run(folder: Path, made: list[Turn], **changes: Any) -> Path:
    folder.mkdir(parents=True)
    begin(folder, begun(**changes), [], {})
    with EventLog(folder) as log:
        log.extend(TurnFinished(turn=turn) for turn in made)
    return folder


def with_report(folder: Path, text: str = HOSTILE) -> Path:
    """Return a run of one candidate whose source and message are hostile."""
    report = sample_reports.incorrect()
    candidate = report.request.candidate.model_copy(
        update={"files": (SourceFile(path="a.py", text=text),)}
    )
    request = report.request.model_copy(update={"candidate": candidate})
    outcome = report.outcome.model_copy(update={"message": text})
    report = report.model_copy(update={"request": request, "outcome": outcome})
    found = EvalSummary(
        protocol="strict", verdict="incorrect", reason=text, report="reports/a.json"
    )
    made = a_run(folder, [Turn(ask=Ask(id=f"p{text}#0", problem="p"), judgements=(found,))],
                 protocols=("strict",), name=text)  # fmt: skip
    (folder / "reports").mkdir()
    (folder / "reports" / "a.json").write_text(report.to_json())
    return made


def test_groups_are_levels_and_categories():
    assert group_of("kernelbench/level2-13") == "level2"
    assert group_of("kernelbenchx/Math/exp") == "Math"
    assert group_of("bundled/softmax") == group_of("softmax") == ""


def test_the_numbers_count_judged_candidates_and_name_the_rest():
    summary = summary_of(turns(60))
    strict = summary["protocols"]["strict"]
    assert strict["verdicts"] == {
        "correct": 20, "incorrect": 10, "rejected": 10, "failed": 10, "unjudged": 10
    }  # fmt: skip
    assert (strict["judged"], strict["correct"]) == (50, 20)
    assert strict["rejected"] == 0.2
    assert set(strict["groups"]) == {"level1", "level2", "level3"}
    assert 0 <= strict["explained_by_group"] <= 1
    one = next(item for item in strict["fast_p"] if item["p"] == 1)
    assert one["low"] <= one["fast_p"] <= one["high"]
    assert one["believed"] <= one["fast_p"] <= one["at_least"]
    assert summary["flips"] == []


def test_a_run_without_judged_candidates_has_no_numbers():
    summary = summary_of(turns(6, verdict="unjudged", speedup=None, low=None, high=None))
    assert summary["protocols"]["strict"]["judged"] == 0
    assert "fast_p" not in summary["protocols"]["strict"]
    assert summary_of([])["protocols"] == {}


def test_a_flip_names_the_reason_of_the_stricter_protocol():
    made = Turn(
        ask=Ask(id="a#0", problem="a"),
        judgements=(
            EvalSummary(protocol="official", verdict="correct", speedup=9.0),
            EvalSummary(protocol="strict", verdict="rejected", reason="input_mutation"),
        ),
    )
    (flip,) = summary_of([made])["flips"]
    assert flip["verdicts"] == {"official": "correct", "strict": "rejected"}
    assert (flip["ask"], flip["cause"], flip["why"]) == ("a#0", "", "input_mutation")


def test_candidate_text_stays_data_in_the_page(tmp_path):
    text = page(document(gather([with_report(tmp_path / "run")]), HOSTILE))
    assert HOSTILE not in text
    assert text.count("</script>") == 2
    data = text.partition('id="data">')[2].partition("</script>")[0]
    assert "<" not in data
    assert json.loads(data)["runs"][0]["name"] == HOSTILE
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text


def test_candidate_text_is_no_formula_in_a_spreadsheet(tmp_path):
    gathered = gather([with_report(tmp_path / "run", "=HYPERLINK(1)")])
    (row,) = csv.DictReader(io.StringIO(as_csv(gathered)))
    assert (row["run"], row["reason"]) == ("'=HYPERLINK(1)", "'=HYPERLINK(1)")
    assert "\\|" in as_markdown(gather([a_run(tmp_path / "b", turns(6), name="a|b")]), "t")


def test_each_csv_line_has_the_command_that_repeats_it(tmp_path):
    run = with_report(tmp_path / "a run")
    (row,) = csv.DictReader(io.StringIO(as_csv(gather([run]))))
    assert shlex.split(row["again"])[:3] == ["tilewright", "eval", "--from-report"]
    assert Path(shlex.split(row["again"])[3]) == (run / row["report"]).resolve()


def test_several_runs_make_a_leaderboard_of_the_same_problems_protocols_and_device(tmp_path):
    one, two = a_run(tmp_path / "1", turns(6)), a_run(tmp_path / "2", turns(12), name="other")
    assert len(document(gather([one, two]), "t")["runs"]) == 2
    for name, value in (
        ("problems", "kernelbench/level1"), ("protocols", ("strict",)), ("device", "A100"),
    ):  # fmt: skip
        third = a_run(tmp_path / name, turns(6), **{name: value})
        with pytest.raises(ConfigError, match=f"cannot be compared: {name}"):
            gather([one, third])


def test_different_problems_of_one_name_make_no_leaderboard(tmp_path):
    one, two = a_run(tmp_path / "1", turns(6)), a_run(tmp_path / "2", turns(6))
    (two / "problems.jsonl").write_text('{"another": "revision"}\n')
    with pytest.raises(ConfigError, match="have equal names and different content"):
        gather([one, two])


def test_an_annotation_is_shown_with_its_verdict(tmp_path):
    run = a_run(tmp_path / "1", turns(6))
    annotate([run], "kernelbench/level3-2#0", "the reference is wrong here")
    annotate([run, run], "kernelbench/level1-0#0", "fine")
    rows = document(gather([run]), "t")["runs"][0]["rows"]
    noted = {row["ask"]: row["note"] for row in rows if row["note"]}
    assert noted == {
        "kernelbench/level3-2#0": "the reference is wrong here",
        "kernelbench/level1-0#0": "fine",
    }
    assert [row["judgements"][0]["verdict"] for row in rows][2] == "incorrect"
    with pytest.raises(ConfigError, match="nobody#0: not in "):
        annotate([run], "nobody#0", "x")
    other = a_run(tmp_path / "2", turns(3))
    with pytest.raises(ConfigError, match=r"1 and .*2 have it; give one of them alone"):
        annotate([run, other], "kernelbench/level1-0#0", "whose?")
    annotate([run, other], "kernelbench/level2-4#0", "of the first alone")
    assert "first alone" in (run / "annotations.yaml").read_text()
    (run / "annotations.yaml").write_text("- a list")
    with pytest.raises(RecordError, match=r"annotations.yaml: write lines"):
        gather([run])


def test_a_hundred_thousand_candidates_make_a_small_page_quickly(tmp_path):
    run = a_run(tmp_path / "1", [])
    lines = [TurnFinished(turn=turn).model_dump_json() for turn in turns(2000)]
    with open(run / "events.jsonl", "a", encoding="utf-8") as file:
        for number in range(10):
            file.writelines(f"{line}\n".replace("#0", f"#{number}", 1) for line in lines)
    start = time.monotonic()
    text = page(document(gather([run]), "many"))
    assert len(text) < 8 << 20
    assert time.monotonic() - start < 60
    assert '"candidates":20000' in text
    assert '"left_out":15000' in text


def test_a_page_stays_small_whatever_candidates_wrote(tmp_path):
    run = with_report(tmp_path / "run", "<" * 30_000)
    found = EvalSummary(
        protocol="strict", verdict="incorrect", reason="\x00" * 5000, report="reports/a.json"
    )
    with EventLog(run) as log:
        for number in range(1, 1500):
            ask = Ask(id=f"p#{number}", problem="p")
            log.append(TurnFinished(turn=Turn(ask=ask, judgements=(found,))))
    gathered = gather([run])
    shown = document(gathered, "large")
    (found_run,) = shown["runs"]
    assert len(page(shown)) < 8_000_000
    assert 10 < len(found_run["whole"]) < MAX_WHOLE_REPORTS == len(gathered.whole)
    assert 500 < len(found_run["rows"]) < 1500
    assert shown["left_out"] == 1500 - len(found_run["rows"])
    everything = document(gather([run], full=True), "large")
    assert len(everything["runs"][0]["whole"]) == len(everything["runs"][0]["rows"]) == 1500


def test_flips_are_counted_by_kind_and_few_are_listed(tmp_path):
    one = EvalSummary(protocol="official", verdict="correct", speedup=2.0)
    two = EvalSummary(protocol="strict", verdict="incorrect", reason="off by 3")
    made = [
        Turn(ask=Ask(id=f"p#{n}", problem="p"), judgements=(one, two if n % 3 else one))
        for n in range(600)
    ]
    gathered = gather([a_run(tmp_path / "run", made)])
    summary = document(gathered, "t")["runs"][0]["summary"]
    verdicts = {"official": "correct", "strict": "incorrect"}
    assert summary["flip_kinds"] == [{"verdicts": verdicts, "cause": "", "count": 400}]
    assert len(summary["flips"]) == MAX_FLIPS
    assert "200 more are in report.csv." in as_markdown(gathered, "t")


def test_few_reports_are_kept_whole_and_unusual_ones_come_first(tmp_path):
    run = tmp_path / "1"
    made = [
        Turn(
            ask=Ask(id=f"p{n}#0", problem=f"p{n}"),
            judgements=(
                EvalSummary(
                    protocol="strict",
                    verdict="rejected" if n % 50 == 0 else "correct",
                    report="reports/a.json",
                ),
            ),
        )
        for n in range(MAX_WHOLE_REPORTS * 2)
    ]
    a_run(run, made, protocols=("strict",))
    (run / "reports").mkdir()
    report: EvalReport = sample_reports.correct()
    (run / "reports" / "a.json").write_text(report.to_json())
    gathered = gather([run])
    assert len(gathered.whole) <= MAX_WHOLE_REPORTS
    assert all(f"0/p{n}#0/strict" in gathered.whole for n in range(0, MAX_WHOLE_REPORTS * 2, 50))
    assert len(gather([run], full=True).whole) == MAX_WHOLE_REPORTS * 2


def test_unreadable_lines_are_named_and_the_rest_is_shown(tmp_path):
    run = a_run(tmp_path / "run", turns(6, report="reports/a.json"))
    (run / "reports").mkdir()
    text = sample_reports.correct().to_json()
    (run / "reports" / "a.json").write_text(
        text.replace('"schema_version":2', '"schema_version":7')
    )
    with open(run / "events.jsonl", "a") as log:
        log.write('{"event": "turn_finished", "turn": 3}\n')
    gathered = gather([run])
    assert len(gathered.runs[0].turns) == 6
    assert any("events.jsonl:8: " in line for line in gathered.skipped)
    assert any("a.json: " in line and "schema version 7" in line for line in gathered.skipped)


def test_a_leaderboard_leaves_out_problems_that_any_run_marks_as_weak(tmp_path):
    weak = {"kernelbench/level1-0": ("zeros",)}
    one = a_run(tmp_path / "one", turns(12))
    two = a_run(tmp_path / "two", turns(12), unsound_problems=weak)
    for run in gather([one, two]).runs:
        assert run.summary["protocols"]["strict"]["weak_left_out"] == 1
        assert run.summary["protocols"]["official"]["weak_left_out"] == 0


def test_runs_of_one_name_are_distinguished_in_any_protocol_order(tmp_path):
    one = a_run(tmp_path / "one", turns(6))
    two = a_run(tmp_path / "two", turns(6), protocols=("official", "strict"))
    names = [run["name"] for run in document(gather([one, two]), "t")["runs"]]
    assert names == [f"somebody ({one})", f"somebody ({two})"]


def test_an_unfinished_run_shows_how_much_is_left(tmp_path):
    run = a_run(tmp_path / "one", turns(2))
    (run / "candidates.jsonl").write_text("{}\n" * 5)
    assert document(gather([run]), "t")["runs"][0]["left"] == 3


def test_one_problem_has_no_interval(tmp_path):
    summary = summary_of(turns(1))
    row = summary["protocols"]["strict"]["fast_p"][0]
    assert (row["low"], row["high"]) == (None, None)
    gathered = gather([a_run(tmp_path / "one", turns(1))])
    assert " to " not in as_markdown(gathered, "t")


def test_notes_and_dr_kernels_score_are_in_the_markdown(tmp_path):
    run = a_run(tmp_path / "1", turns(6))
    annotate([run], "kernelbench/level1-0#0", "fine")
    text = as_markdown(gather([run]), "t")
    assert "| somebody | kernelbench/level1-0#0 | fine |" in text
    assert "as Dr. Kernel scores, best of history of each of 5 trajectories: correct " in text
    with pytest.raises(ConfigError, match="not UTF-8"):
        annotate([run], "kernelbench/level1-0#0", "\udcff")
    assert gather([run]).runs[0].annotations == {"kernelbench/level1-0#0": "fine"}
