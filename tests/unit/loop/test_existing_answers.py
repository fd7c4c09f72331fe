"""Candidates are read from files of every kind; unreadable ones are named."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import sample_reports as reports
from tests.unit.problems.test_imported_sets import MODEL, a_clone
from tests.unit.reports.test_html_report import a_run
from tilewright import config
from tilewright.errors import ConfigError, RecordError
from tilewright.loop.existing_answers import REFERENCE, read_answers
from tilewright.loop.rollout_environment import requested
from tilewright.problems.imported_sets import problem_set
from tilewright.problems.loader import find_problem
from tilewright.records import EvalRequest, Problem, SourceFile
from tilewright.records.events import Ask, EvalSummary, Turn


@pytest.fixture
def problems(tmp_path: Path) -> list[Problem]:
    found = problem_set("kernelbench").read(a_clone(tmp_path / "clone"), "v0")
    return list(found.problems)


def read(where: Path | str, problems: list[Problem]) -> tuple[dict[str, str], list[str]]:
    answers = read_answers(str(where), problems)
    return {ask.id: files[0].text for ask, files in answers.sources.items()}, answers.skipped


def test_a_kernelbench_run_folder_is_read_as_answers(tmp_path, problems):
    folder = tmp_path / "run"
    folder.mkdir()
    for number, sample in ((12, 0), (12, 3), (2, 0)):
        name = f"level_1_problem_{number}_sample_{sample}"
        (folder / f"{name}_kernel.py").write_text(name)
    (folder / "level_3_problem_9_sample_0_kernel.py").write_text("x")
    (folder / "eval_results.json").write_text("{}")
    found, skipped = read(folder, problems)
    # In the order of the problems, whatever the order of the files.
    assert list(found) == [
        "kernelbench/level1-2#0",
        "kernelbench/level1-12#0",
        "kernelbench/level1-12#3",
    ]
    assert found["kernelbench/level1-12#3"] == "level_1_problem_12_sample_3"
    assert len(skipped) == 1
    assert "level_3_problem_9_sample_0_kernel.py: no problem of this run" in skipped[0]


def test_files_and_folders_are_matched_to_problems_by_name(tmp_path, problems):
    folder = tmp_path / "mine"
    (folder / "level2-1").mkdir(parents=True)
    (folder / "level2-1" / "main.py").write_text("folder")
    (folder / "level1-2.py").write_text("zero")
    (folder / "level1-2.1.py").write_text("one")
    found, skipped = read(folder, problems)
    assert found == {
        "kernelbench/level1-2#0": "zero",
        "kernelbench/level1-2#1": "one",
        "kernelbench/level2-1#0": "folder",
    }
    assert skipped == []


def test_a_folder_of_several_candidates_is_no_candidate(tmp_path, problems):
    folder = tmp_path / "mine" / "level2-1"
    folder.mkdir(parents=True)
    for name in ("fast", "slow"):
        (folder / f"{name}.py").write_text("class ModelNew: pass\n")
    (folder.parent / "level1-2.half.py").write_text("class ModelNew: pass\n")
    (folder.parent / "level1-2.py").write_text("class ModelNew: pass\n")
    found, skipped = read(folder.parent, problems)
    assert list(found) == ["kernelbench/level1-2#0"]
    assert "'half' is no sample number; name it level1-2.1.py" in skipped[0]
    assert "fast.py, slow.py are candidates of their own" in skipped[1]
    # One that imports the other is one candidate of two files.
    (folder / "slow.py").write_text(
        "from fast import ModelNew as Fast\nclass ModelNew(Fast): pass\n"
    )
    found, skipped = read(folder.parent, problems)
    assert "kernelbench/level2-1#0" in found
    assert len(skipped) == 1


ROWS: list[Any] = [
    {"problem": "kernelbench/level1-2", "code": "a"},
    {"level": 1, "problem_id": 2, "kernel": "b"},
    {"file": "level1-12.py", "predict": "c", "sample": 4},
    {"file": "level1-12.py", "predict": "d", "sample": 4},
    {"problem": "level9-9", "code": "e"},
    {"problem": "level2-1", "text": "no source"},
]


def test_json_lines_are_read_under_any_field_name(tmp_path, problems):
    path = tmp_path / "rows.jsonl"
    lines = [json.dumps(row) for row in ROWS]
    path.write_text("\n".join([*lines[:2], '{"problem": "level2-1", "co', *lines[2:]]))
    found, skipped = read(path, problems)
    assert found == {
        "kernelbench/level1-2#0": "a",
        "kernelbench/level1-2#1": "b",
        "kernelbench/level1-12#4": "c",
    }
    for number, says in (
        (3, "not JSON"), (5, "level1-12#4 occurs twice"), (6, "'level9-9'"), (7, "no source in any")
    ):  # fmt: skip
        assert any(f"rows.jsonl:{number}" in line and says in line for line in skipped), skipped


def test_parquet_rows_are_read_as_answers(tmp_path, problems):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "rows.parquet"
    names = [row.get("problem", "level1-2") for row in ROWS[:2]]
    parquet.write_table(pyarrow.table({"problem": names, "code": ["a", "b"]}), path)
    found, skipped = read(path, problems)
    assert found == {"kernelbench/level1-2#0": "a", "kernelbench/level1-2#1": "b"}
    assert skipped == []
    path.write_text("not parquet")
    with pytest.raises(RecordError, match=r"rows.parquet: not parquet"):
        read(path, problems)


def test_parquet_without_its_package_says_what_to_install(tmp_path, problems, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "rows.parquet").write_text("")
    with pytest.raises(ConfigError, match="pip install"):
        read(tmp_path / "rows.parquet", problems)


def test_a_tilewright_run_is_read_as_answers(tmp_path, problems):
    asked = Ask(id="kernelbench/level1-2#3", problem="kernelbench/level1-2", sample=3)
    kept = EvalSummary(protocol="strict", verdict="correct", report="reports/a.json")
    lost = EvalSummary(protocol="strict", verdict="unjudged")
    other = Ask(id="x#0", problem="x")
    run = a_run(
        tmp_path / "run",
        [Turn(ask=asked, judgements=(kept,)), Turn(ask=other, judgements=(lost,))],
    )
    (run / "reports").mkdir()
    (run / "reports" / "a.json").write_text(reports.correct().to_json())
    found, skipped = read(run, problems)
    assert found == {asked.id: reports.request().candidate.files[0].text}
    assert "x#0: none of these problems" in skipped[0]


def test_the_reference_is_a_candidate_for_both_kinds_of_problem(problems):
    found, _ = read(REFERENCE, [*problems, find_problem("softmax")])
    space: dict[str, Any] = {}
    exec(compile(found["kernelbench/level1-2#0"], "candidate.py", "exec"), space)
    assert space["ModelNew"] is space["Model"]
    exec(compile(found["bundled/softmax#0"], "candidate.py", "exec"), space)
    assert space["softmax"] is space["reference"]


def test_one_file_answers_one_problem(tmp_path, problems):
    path = tmp_path / "mine.py"
    path.write_text(MODEL.format(number=1))
    found, _ = read(path, problems[:1])
    assert list(found) == ["kernelbench/level1-2#0"]
    with pytest.raises(ConfigError, match="one file answers one problem, and there are 3"):
        read(path, problems)


def test_a_missing_or_empty_source_is_a_config_error(tmp_path, problems):
    with pytest.raises(ConfigError, match="or `reference`"):
        read(tmp_path / "no", problems)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="it has no candidate; name the files"):
        read(tmp_path / "empty", problems)


def test_a_run_of_several_turns_gives_the_last_answer_of_each_trajectory(tmp_path, problems):
    first, second = (
        Ask(id=f"kernelbench/level1-2#0.{n}", problem="kernelbench/level1-2", turn=n)
        for n in (0, 1)
    )
    (tmp_path / "run" / "reports").mkdir(parents=True)
    made = []
    for number, ask in enumerate((first, second)):
        report = reports.correct()
        file = SourceFile(path="candidate.py", text=f"# {number}")
        candidate = report.request.candidate.model_copy(update={"files": (file,)})
        request = report.request.model_copy(update={"candidate": candidate})
        report = report.model_copy(update={"request": request})
        name = f"reports/{number}.json"
        (tmp_path / "run" / name).write_text(report.to_json())
        kept = EvalSummary(protocol="strict", verdict="correct", report=name)
        made.append(Turn(ask=ask, judgements=(kept,)))
    run = a_run(tmp_path / "made", made)
    (tmp_path / "run" / "reports").rename(run / "reports")
    assert read(run, problems) == ({"kernelbench/level1-2#0": "# 1"}, [])


def test_a_report_of_another_version_is_named_and_the_rest_is_read(tmp_path, problems):
    asked = [
        Ask(id=f"kernelbench/level1-{n}#0", problem=f"kernelbench/level1-{n}") for n in (2, 12)
    ]
    made = [
        Turn(ask=ask, judgements=(
            EvalSummary(protocol="strict", verdict="correct", report=f"reports/{n}.json"),
        ))
        for n, ask in enumerate(asked)
    ]  # fmt: skip
    run = a_run(tmp_path / "run", made)
    (run / "reports").mkdir()
    text = reports.correct().to_json()
    (run / "reports" / "0.json").write_text(
        text.replace('"schema_version":2', '"schema_version":7')
    )
    (run / "reports" / "1.json").write_text(text)
    found, (named,) = read(run, problems)
    assert list(found) == [asked[1].id]
    assert "reports/0.json: " in named
    assert "schema version 7" in named


def test_a_run_of_eval_is_one_candidate(tmp_path):
    report = reports.correct()
    (tmp_path / "report.json").write_text(report.to_json())
    found, _ = read(tmp_path, [report.request.problem])
    assert list(found.values()) == [report.request.candidate.files[0].text]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"code": "x = 1", "sample": -3}, "sample '-3' is no integer"),
        ({"code": "x = 1", "sample": True}, "sample 'True' is no integer"),
        ({"code": "x = 1", "sample": "last"}, "sample 'last' is no integer"),
        ({"code": "x = 1", "sample": "0"}, "level1-2#0 occurs twice"),
        ({"text": "x = 1"}, "no source in any of"),
        ({"original_python_code": "other"}, "has the name of its reference"),
    ],
)
def test_a_row_without_a_candidate_is_named_and_the_rest_is_read(tmp_path, problems, row, says):
    good = {"level": 1, "problem_id": 2.0, "code": "good", "sample": 0}
    named = {} if "original_python_code" in row else {"problem": "level1-2"}
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (good, {**named, **row})))
    found, (line,) = read(path, problems)
    assert found == {"kernelbench/level1-2#0": "good"}
    assert line.startswith(f"{path}:2: ")
    assert says in line


def test_a_task_may_be_named_by_its_group_and_name(tmp_path, problems):
    of_x = [problems[0].model_copy(update={"id": f"kernelbenchx/Math/{n}"}) for n in ("add", "b")]
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"file": "Math/add.py", "predict": "x = 1"}) + "\n")
    assert read(path, of_x) == ({"kernelbenchx/Math/add#0": "x = 1"}, [])


def test_an_invalid_candidate_fails_with_the_tolerance_of_its_problem(problems):
    settings = config.load(overrides=("eval.protocol=official",), environ={})
    tight = problems[0].model_copy(update={"tolerance": 1e-4})
    for problem, tolerance in ((tight, 1e-4), (problems[0], None)):
        found = requested((SourceFile(path="a.txt", text="x = 1"),), problem, settings)
        assert isinstance(found, EvalSummary)
        assert found.tolerance == tolerance


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [{"role": "assistant", "content": "Sorry, I cannot."}]},
        {"messages": []},
        {"code": None},
        {"predict": ""},
    ],
)
def test_an_answer_without_code_is_a_candidate_without_text(tmp_path, problems, row):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"problem": "level1-2", **row}) + "\n")
    assert read(path, problems) == ({"kernelbench/level1-2#0": ""}, [])
    (answer,) = read_answers(str(path), problems).sources.values()
    found = requested(answer, problems[0], config.load(environ={}))
    assert isinstance(found, EvalRequest)
    # The evaluator reports that it lacks its entry point.
    assert [file.text for file in found.candidate.files] == [""]


def test_a_conversation_answers_the_problem_whose_reference_it_shows(tmp_path, problems):
    said = [
        {"role": "user", "content": "write"},
        {"role": "assistant", "content": "```python\nclass ModelNew:\n    first = 1\n```"},
        {"role": "user", "content": "again"},
        {"role": "assistant", "content": "```python\nclass ModelNew:\n    second = 1\n```"},
    ]
    source = problems[1].source.text
    row = {"uuid": "abc", "messages": said, "original_python_code": f"{source}\n"}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row))
    found, _ = read(path, problems)
    assert list(found) == [f"{problems[1].id}#0"]
    assert "second" in next(iter(found.values()))


@pytest.mark.parametrize(
    "row",
    [
        {"uuid": 0, "original_python_code": "class Model: pass", "messages": []},
        {"original_python_code": "class Model: pass", "code": "x"},
        {"task_id": 40, "code": "x"},
        {"problem_id": 7, "code": "x"},
    ],
)
def test_an_answer_to_an_unknown_problem_is_skipped(tmp_path, problems, row):
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{json.dumps(row)}\n{json.dumps({'code': 'mine'})}\n")
    found, skipped = read(path, problems[:1])
    assert list(found.values()) == ["mine"]
    assert "rows.jsonl:1: no problem of this run has the name" in skipped[0]


def test_a_last_turn_without_code_is_no_answer(tmp_path, problems):
    name = "kernelbench/level1-2"
    asks = Ask(id="0", problem=name), Ask(id="1", problem=name, turn=1, role="say")
    kept = EvalSummary(protocol="strict", verdict="correct", report="reports/0.json")
    run = a_run(tmp_path / "run", [Turn(ask=asks[0], judgements=(kept,)), Turn(ask=asks[1])])
    (run / "reports").mkdir()
    (run / "reports" / "0.json").write_text(reports.correct().to_json())
    found, _ = read(run, problems)
    assert found == {f"{name}#0": reports.correct().request.candidate.files[0].text}


def test_pipes_and_links_out_of_a_folder_are_skipped(tmp_path, problems):
    folder = tmp_path / "mine"
    folder.mkdir()
    os.mkfifo(folder / "level1-2.py")
    (tmp_path / "secret.py").write_text("secret")
    (folder / "level1-12.py").symlink_to(tmp_path / "secret.py")
    (folder / "level2-1.py").write_text("fine")
    found, skipped = read(folder, problems)
    assert found == {"kernelbench/level2-1#0": "fine"}
    assert any("neither a file nor a folder" in line for line in skipped)
    assert any("a link out of the folder" in line for line in skipped)


def test_a_lone_surrogate_becomes_a_question_mark(tmp_path, problems):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"problem": "level1-2", "code": "# \ud800"}))
    assert read(path, problems) == ({"kernelbench/level1-2#0": "# ?"}, [])
