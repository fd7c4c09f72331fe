"""`tilewright compare` over run folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.search_turns import judged
from tests.unit.cli.test_eval import refused
from tilewright._version import __version__
from tilewright.records.event_log import EventLog
from tilewright.records.events import Ask, RunStarted, TurnFinished

HOSTILE = "set/<b>|x"


def a_run(folder: Path, device: str = "one", source: str = "", **speedups: float | None) -> Path:
    """Write a run with a correct candidate for each speed-up, and a failed one for `None`."""
    folder.mkdir()
    log = EventLog(folder)
    log.append(
        RunStarted(
            kind="bench",
            name="made",
            problems="set",
            protocols=("strict",),
            evaluator=__version__,
            device=device,
        )
    )
    for name, speedup in speedups.items():
        problem = name if "/" in name else f"set/{name}"
        verdict = "failed" if speedup is None else "correct"
        turn = judged(Ask(id=f"{problem}#0", problem=problem), name, verdict, speedup, error=0.02)
        log.append(TurnFinished(turn=turn))
    log.close()
    names = [name if "/" in name else f"set/{name}" for name in speedups]
    rows = [{"id": name, "source": {"text": f"{source}{name}"}} for name in names]
    (folder / "problems.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


def test_changes_are_listed_and_a_regression_fails(run, tmp_path):
    before = a_run(tmp_path / "before", a=1.0, b=2.0, c=None, d=1.0)
    after = a_run(tmp_path / "after", a=1.5, b=None, c=1.0, d=1.0)
    found = run("compare", str(before), str(after))
    assert found.exit_code == 0
    lines = found.stdout.splitlines()
    assert [line.split()[-1] for line in lines[1:]] == ["set/b", "set/c", "set/a"]
    said = "4 problems: 1 broke, 1 became correct, 1 faster, 1 no measurable change."
    assert said in found.stderr
    assert run("compare", str(before), str(after), "--fail-on-regression").exit_code == 1
    assert run("compare", str(before), str(before), "--fail-on-regression").exit_code == 0
    rows = json.loads(run("compare", str(before), str(after), "--json").stdout)["rows"]
    assert rows[2]["ratio"] == pytest.approx(1.5)


def test_a_page_and_markdown_show_hostile_names_as_text(run, tmp_path):
    before = a_run(tmp_path / "before", **{HOSTILE: 1.0})
    after = a_run(tmp_path / "after", **{HOSTILE: None})
    page, markdown = tmp_path / "page.html", tmp_path / "changes.md"
    words = ("compare", str(before), str(after), "--page", str(page), "--markdown", str(markdown))
    found = run(*words)
    assert found.exit_code == 0
    assert f"the changes as Markdown are in {markdown}" in found.stderr
    assert f"the page is in {page}; open {page.as_uri()}" in found.stderr
    assert "<b>" not in page.read_text()
    assert "&lt;b&gt;" in page.read_text()
    (line,) = [line for line in markdown.read_text().splitlines() if "| broke" in line]
    assert line.replace("\\|", "").count("|") == 6
    assert "<b>" not in line


def test_runs_of_two_devices_or_problems_are_named(run, tmp_path):
    one, other = a_run(tmp_path / "1", a=1.0), a_run(tmp_path / "2", "two", a=3.0)
    found = run("compare", str(one), str(other), "--fail-on-regression")
    assert found.exit_code == 0
    assert "two devices, one and two: speed-ups are shown and not compared" in found.stderr
    third = a_run(tmp_path / "3", z=1.0)
    found = run("compare", str(one), str(third), "--fail-on-regression")
    assert found.exit_code == 1
    assert "no problem in common" in found.stderr


def test_problems_of_one_name_that_differ_are_named(run, tmp_path):
    one, other = a_run(tmp_path / "1", a=1.0), a_run(tmp_path / "2", source="other ", a=1.0)
    said = "The problems themselves differ, so their verdicts do not compare: set/a."
    assert said in run("compare", str(one), str(other)).stderr
    (other / "events.jsonl").write_text("damaged\n" + (other / "events.jsonl").read_text())
    found = run("compare", str(one), str(other))
    assert "events.jsonl" in found.stderr
    (other / "problems.jsonl").unlink()
    assert said in run("compare", str(one), str(other)).stderr


def test_what_is_no_run_is_refused(run, tmp_path):
    one = a_run(tmp_path / "1", a=1.0)
    refused(run("compare", str(one), str(tmp_path)), 6, "no run: it has no report and no event log")
    refused(run("compare", str(one), str(one), "--protocol", "official"), 2, "no verdicts")
    refused(run("compare", str(one), str(one), "--page", "/no/such"), 2, "/no/such")


@pytest.mark.parametrize(
    "words", [["report"], ["view", "--export", "x.html"], ["bench", "--resume"]]
)
def test_a_run_with_a_missing_log_is_no_run_of_eval(run, tmp_path, words):
    folder = a_run(tmp_path / "run", a=1.0)
    # `report` writes a file whose name is also that of the report of a run of eval.
    (folder / "report.json").write_text('{"title": "a page"}')
    (folder / "events.jsonl").unlink()
    missing = f"{folder}: its event log events.jsonl is missing; put it back"
    refused(run(*words, str(folder)), 6, missing)
    whole = a_run(tmp_path / "whole", a=1.0)
    refused(run("compare", str(whole), str(folder)), 6, missing)


def test_a_run_of_a_newer_version_is_named_as_such(run, tmp_path):
    whole, newer = (a_run(tmp_path / name, a=1.0) for name in ("whole", "newer"))
    first, *rest = (newer / "events.jsonl").read_text().splitlines()
    changed = json.dumps({**json.loads(first), "schema_version": 99})
    (newer / "events.jsonl").write_text("\n".join([changed, *rest, ""]))
    said = "events.jsonl:1: written with schema version 99"
    refused(run("compare", str(whole), str(newer)), 6, said)
