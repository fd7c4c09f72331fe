"""`tilewright bench` and `report` from the command line, over a scripted evaluator."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests import sample_reports as reports
from tests.unit.reports.test_html_report import a_run, turns, with_report
from tilewright.executors.local import LocalExecutor
from tilewright.records.event_log import EventLog
from tilewright.records.events import RequestsIssued


@pytest.fixture
def judged(monkeypatch) -> list[str]:
    """Let every candidate be correct; return what was judged."""
    asked: list[str] = []

    def evaluate(_self, request, *_, **__):
        asked.append(request.candidate.files[0].text)
        return reports.correct().model_copy(update={"request": request})

    monkeypatch.setattr(LocalExecutor, "evaluate", evaluate)
    return asked


def rows(count: int) -> str:
    good = "def softmax(x):\n    return x.softmax(-1)  # {}\n"
    lines = [{"problem": "softmax", "code": good.format(n)} for n in range(count)]
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def test_a_run_resumes_where_its_limit_ended_it(run, judged):
    Path("rows.jsonl").write_text(rows(5) + '{"problem": "softm')
    first = run("bench", "softmax", "--candidates", "rows.jsonl", "--max-candidates", "2", "--json")
    assert first.exit_code == 0, first.stderr
    assert "left out: rows.jsonl:6: not JSON" in first.stderr
    assert "2 judged" in first.stderr
    document = json.loads(first.stdout)
    assert (document["candidates"], document["left"]) == (2, 3)
    assert "1 of 1 problem was never linted (a weak problem accepts wrong answers)" in first.stderr
    assert "; optional: tilewright problems lint softmax\n" in first.stderr
    begun = json.loads(Path(document["run"], "events.jsonl").read_text().partition("\n")[0])
    assert (begun["unsound_problems"], begun["problems_not_linted"]) == ({}, 1)
    second = run("bench", "--resume", document["run"])
    assert second.exit_code == 0, second.stderr
    assert "3 judged" in second.stderr
    assert re.search(r"geometric mean +1\.420x", second.stdout)
    assert len(judged) == len(set(judged)) == 5
    again = run("bench", "--resume", document["run"], "--json")
    assert "0 judged" in again.stderr
    assert "per second" not in again.stderr
    assert json.loads(again.stdout)["throughput"]["candidates_per_s"] is None
    assert f"next: tilewright report {document['run']}" in again.stderr


def test_the_rates_count_what_this_invocation_judged(run, judged):
    Path("rows.jsonl").write_text(rows(4))
    limit = ("--max-candidates", "2", "--protocol", "strict,official", "--json")
    first = run("bench", "softmax", "--candidates", "rows.jsonl", *limit)
    document = json.loads(first.stdout)
    log = Path(document["run"], "events.jsonl")
    # As after a kill between the report and the turn: the next invocation finds the report.
    log.write_text(log.read_text().rpartition('{"event":"turn_finished"')[0])
    second = run("bench", "--resume", document["run"], "--json")
    assert "3 judged" in second.stderr
    assert len(judged) == 2 * 4
    for said, candidates in ((first, 2), (second, 2)):
        made = json.loads(said.stdout)["throughput"]
        assert made["candidates_per_s"] == pytest.approx(candidates / made["seconds"])
        assert re.search(r"judged in \d+ s, \d left, [\d.e+]+ candidates per second", said.stderr)


def test_a_candidate_without_an_entry_point_fails_and_the_run_continues(run):
    other = json.dumps({"problem": "softmax", "code": "def nobody(x):\n    return x\n"})
    Path("rows.jsonl").write_text(rows(1) + other + "\n")
    untimed = ("--set", "eval.timing.enabled=false")
    result = run("bench", "softmax", "--candidates", "rows.jsonl", "--json", *untimed)
    numbers = json.loads(result.stdout)["protocols"]["strict"]
    assert numbers["verdicts"] == {"correct": 1, "failed": 1}, result.stderr
    assert "#1: failed (missing_entry in build: " in result.stderr
    assert "neither `ModelNew` nor `softmax`" in result.stderr


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["bench"], 2, "needs PROBLEMS and --candidates"),
        (["bench", "softmax", "--candidates", "nowhere"], 2, "no such file or folder"),
        (["bench", "nope", "--candidates", "reference"], 3, "neither a file"),
        (["bench", "softmax", "--candidates", "reference", "--protocol", "x"], 2, "'x'"),
        (["bench", "--resume", "nowhere"], 6, "no such folder"),
        (["bench", "softmax", "--resume", "nowhere"], 2, "leave out problems"),
        (["bench", "--resume", "nowhere", "--from", "home"], 2, "leave out --from"),
        (["bench", "--resume", "nowhere", "--protocol", "strict"], 2, "leave out --protocol"),
        (["bench", "softmax", "--model", "x", "--workers", "2"], 2, "give --max-concurrency"),
        (["report", "nowhere"], 6, "no such folder"),
        (["problems", "import", "nope"], 3, "kernelbench, kernelbenchx, robustkbench, tritonbench"),
        (["problems", "import", "kernelbench", "--from", "nowhere"], 3, "no such file"),
        (
            ["problems", "import", "tritonbench"],
            3,
            "git clone https://github.com/thunlp/TritonBench",
        ),
        (["problems", "list", "kernelbench"], 3, "is not imported yet"),
    ],
)
def test_bad_input_is_one_line(run, words, code, says):
    result = run(*words)
    assert result.exit_code == code
    assert result.stdout == ""
    assert says in result.stderr.splitlines()[-1]
    assert not Path("runs").exists()


def test_a_set_is_imported_listed_and_shown(run):
    model = (
        '"""Doubles."""\nimport torch\n\n\nclass Model(torch.nn.Module):\n'
        "    def forward(self, x):\n        return x * 2\n\n\n"
        "def get_inputs():\n    return [torch.rand(4)]\n"
    )
    lines = [{"level": 1, "problem_id": n, "code": model} for n in (1, 2)]
    Path("rows.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in [*lines, lines[0]]))
    made = run("problems", "import", "kernelbench", "--from", "rows.jsonl", "--revision", "v0")
    assert made.exit_code == 0, made.stderr
    assert "stands twice" in made.stderr
    listed = run("problems", "list", "kernelbench/level1", "--json")
    assert [item["address"] for item in json.loads(listed.stdout)] == [
        "kernelbench/level1-1",
        "kernelbench/level1-2",
    ]
    assert "imported: v0 (2)" in run("problems", "list").stderr
    Path("rows.jsonl").write_text(json.dumps(lines[0]))
    again = run("problems", "import", "kernelbench", "--from", "rows.jsonl", "--revision", "v0")
    assert "1 problems of kernelbench@v0" in again.stderr
    assert "which replace 2" in again.stderr
    model = model.replace('"""Doubles."""\n', "").replace("    def", '    """Twice."""\n    def', 1)
    Path("rows.jsonl").write_text(json.dumps({**lines[1], "code": model}))
    run("problems", "import", "kernelbench", "--from", "rows.jsonl", "--revision", "v0")
    (row,) = json.loads(run("problems", "list", "kernelbench", "--json").stdout)
    assert row["about"] == "Twice."
    Path("rows.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    run("problems", "import", "kernelbench", "--from", "rows.jsonl", "--revision", "v0")
    assert "Doubles." in run("problems", "show", "kernelbench/level1/2").stdout


def test_explain_finds_a_candidate_of_a_run_by_its_id(run, tmp_path):
    folder = with_report(tmp_path / "one", "text")
    named = run("explain", str(folder))
    assert f"explain one of its reports, such as {folder}/ptext#0" in named.stderr
    for word in (f"{folder}/ptext#0", f"{folder}#ptext#0"):
        found = run("explain", word)
        assert found.exit_code == 0, found.stderr
        assert found.stdout.startswith("incorrect")
        assert f"run {folder}/reports/a.json; next: " in found.stderr


def test_explain_and_resume_refuse_runs_of_another_kind(run, tmp_path):
    folder = a_run(tmp_path / "one", turns(2))
    said = run("explain", str(folder))
    assert said.exit_code == 6
    assert "holds several evaluations: explain one of its reports" in said.stderr
    missing = run("explain", f"{folder}/kernelbench/level1-0#7")
    assert missing.exit_code == 6
    assert (
        f"{folder} has no candidate kernelbench/level1-0#7; it has: kernelbench" in missing.stderr
    )
    lacking = run("explain", f"{folder}#kernelbench/level1-0#0")
    assert "the candidate kernelbench/level1-0#0 has no report" in lacking.stderr
    with EventLog(folder) as log:
        log.append(RequestsIssued(limit=1, asks=(turns(1)[0].ask,)))
    (folder / "candidates.jsonl").unlink()
    gone = run("bench", "--resume", str(folder))
    assert gone.exit_code == 6
    assert "candidates.jsonl: missing; without it this run cannot be resumed" in gone.stderr


def test_view_names_a_damaged_line_and_shows_the_rest(run, tmp_path):
    folder = a_run(tmp_path / "one", turns(2))
    whole = (folder / "events.jsonl").read_text().splitlines(keepends=True)
    (folder / "events.jsonl").write_text("".join([*whole[:2], '{"event": 1}\n', *whole[2:]]))
    seen = run("view", str(folder), "--json")
    assert len(json.loads(seen.stdout)["turns"]) == 2
    assert "events.jsonl:3: " in seen.stderr


def test_a_report_is_written_to_the_requested_folder(run, tmp_path):
    folder = a_run(tmp_path / "one", turns(12))
    note = ("--annotate", "kernelbench/level1-0#0", "looks right")
    result = run("report", str(folder), "--out", "out", "--title", "mine", *note)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "out/report.html\n"
    names = {item.name for item in Path("out").iterdir()}
    assert names == {"report.html", "report.json", "report.csv", "report.md"}
    assert "looks right" in Path("out/report.csv").read_text()
    assert Path("out/report.md").read_text().startswith("# mine\n")


def test_a_limit_holds_with_several_workers(run, judged):
    Path("rows.jsonl").write_text(rows(5))
    asked = (
        "bench",
        "softmax",
        "--candidates",
        "rows.jsonl",
        "--workers",
        "3",
        "--max-candidates",
        "1",
    )
    first = run(*asked, "--json")
    assert "1 judged" in first.stderr, first.stderr
    document = json.loads(first.stdout)
    assert (document["candidates"], document["left"], len(judged)) == (1, 4, 1)
    assert "4 judged" in run("bench", "--resume", document["run"], "--workers", "3").stderr
    assert len(judged) == len(set(judged)) == 5


@pytest.mark.usefixtures("judged")
def test_a_resumed_run_of_files_keeps_the_settings_of_its_verdicts(run):
    Path("rows.jsonl").write_text(rows(2))
    words = ("--candidates", "rows.jsonl", "--max-candidates", "1", "--json")
    folder = json.loads(run("bench", "softmax", *words).stdout)["run"]
    mixed = run("bench", "--resume", folder, "--set", "eval.baselines=[compile]")
    assert mixed.exit_code == 2
    assert "eval.baselines" in mixed.stderr
    assert "which a resumed run keeps" in mixed.stderr
    moved = run("bench", "--resume", folder, "--set", "host=never")
    assert moved.exit_code == 0, moved.stderr
    assert "1 judged" in moved.stderr


MODEL = """
def answer(messages, ask):
    if ask.turn < 2:
        return "Let me think."
    return f"```python\\ndef softmax(x):\\n    return x.softmax(-1)  # {ask.turn}\\n```"
"""


def test_a_limit_of_evaluations_counts_no_turn_of_a_model_that_none_judged(run, judged):
    Path("model.py").write_text(MODEL)
    words = ("--model", "scripted:model.py", "--language", "torch", "--turns", "5")
    made = run("bench", "softmax", *words, "--max-candidates", "1", "--json")
    assert made.exit_code == 0, made.stderr
    assert len(judged) == 1
    assert "3 turns in" in made.stderr


@pytest.mark.usefixtures("judged")
def test_an_undecodable_title_is_refused_and_keeps_the_old_report(run):
    Path("rows.jsonl").write_text(rows(1))
    made = run("bench", "softmax", "--candidates", "rows.jsonl", "--out", "r", "--json")
    folder = Path(json.loads(made.stdout)["run"])
    assert run("report", str(folder)).exit_code == 0
    before = (folder / "report.html").read_bytes()
    again = run("report", str(folder), "--title", os.fsdecode(b"\xff"))
    assert again.exit_code == 2
    assert "--title" in again.stderr
    odd = folder.rename(folder.with_name(os.fsdecode(b"run\xff")))
    assert run("report", str(odd)).exit_code == 2
    assert (odd / "report.html").read_bytes() == before
