"""Candidates from files of every kind: what is read, and how what cannot be read is named."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit import cli_reports as reports
from tests.unit.test_problem_sets import MODEL, a_clone
from tests.unit.test_reports import a_run
from tilewright.errors import ConfigError, RecordError
from tilewright.loop.files import REFERENCE, read_answers
from tilewright.problems.reader import find_problem
from tilewright.problems.store import problem_set
from tilewright.records import Problem
from tilewright.records.events import Ask, Judgement, Turn


@pytest.fixture
def problems(tmp_path: Path) -> list[Problem]:
    found = problem_set("kernelbench").read(a_clone(tmp_path / "clone"), "v0")
    return list(found.problems)


def read(where: Path | str, problems: list[Problem]) -> tuple[dict[str, str], list[str]]:
    answers = read_answers(str(where), problems)
    return {ask.id: files[0].text for ask, files in answers.sources.items()}, answers.skipped


def test_a_run_folder_of_kernelbench(tmp_path, problems):
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


def test_files_and_folders_by_the_names_of_problems(tmp_path, problems):
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


ROWS: list[Any] = [
    {"problem": "kernelbench/level1-2", "code": "a"},
    {"level": 1, "problem_id": 2, "kernel": "b"},
    {"file": "level1-12.py", "predict": "c", "sample": 4},
    {"file": "level1-12.py", "predict": "d", "sample": 4},
    {"problem": "level9-9", "code": "e"},
    {"problem": "level2-1", "text": "no source"},
]


def test_lines_of_json_by_any_of_their_names(tmp_path, problems):
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
        (3, "not JSON"), (5, "level1-12#4 stands twice"), (6, "'level9-9'"), (7, "no source in any")
    ):  # fmt: skip
        assert any(f"rows.jsonl:{number}" in line and says in line for line in skipped), skipped


def test_parquet(tmp_path, problems):
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


def test_a_run_of_ours(tmp_path, problems):
    asked = Ask(id="kernelbench/level1-2#3", problem="kernelbench/level1-2", sample=3)
    kept = Judgement(protocol="strict", verdict="correct", report="reports/a.json")
    lost = Judgement(protocol="strict", verdict="unjudged")
    other = Ask(id="x#0", problem="x")
    run = a_run(
        tmp_path / "run",
        [Turn(ask=asked, judgements=(kept,)), Turn(ask=other, judgements=(lost,))],
    )
    (run / "reports").mkdir()
    (run / "reports" / "a.json").write_text(reports.correct().to_json())
    found, skipped = read(run, problems)
    assert found == {asked.id: reports.request().candidate.files[0].text}
    assert "x#0: not among these problems" in skipped[0]


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
    with pytest.raises(ConfigError, match="one file answers one problem, these are 3"):
        read(path, problems)


def test_nothing_there_is_said_so(tmp_path, problems):
    with pytest.raises(ConfigError, match="or write `reference`"):
        read(tmp_path / "no", problems)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="no candidate in it; files are called"):
        read(tmp_path / "empty", problems)
