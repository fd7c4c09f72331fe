"""Programs of a family as rows, as a person writes them with `tilewright data family`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tilewright.cli.main import cli
from tilewright.families.nano.compositions import COMPOSITIONS
from tilewright.families.nano.program_slots import ProgramPlan
from tilewright.rl.data.family_rows import family_rows


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_has_every_program_of_the_census(home):  # noqa: ARG001
    done = CliRunner().invoke(cli, ["data", "family", "nano", "--to", "programs.jsonl"])
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in Path("programs.jsonl").read_text().splitlines()]
    assert rows == list(family_rows("", "census"))
    assert {row["problem"] for row in rows} == {item.id for item in COMPOSITIONS}
    assert {row["plan"] for row in rows} == {plan.value for plan in ProgramPlan}
    first = rows[0]
    assert first["code"] in first["messages"][1]["content"]
    assert first["messages"][0]["content"].startswith("def reference(x")
    assert f"{len(rows)} programs for 12 problems in programs.jsonl" in done.stderr


def test_a_part_of_a_family_is_written_as_parquet(home):  # noqa: ARG001
    parquet = pytest.importorskip("pyarrow.parquet")
    words = ["nano/held_out", "--to", "programs.parquet", "--extent", "space"]
    done = CliRunner().invoke(cli, ["data", "family", *words])
    assert done.exit_code == 0, done.output
    rows = parquet.read_table("programs.parquet").to_pylist()
    assert len(rows) == len(list(family_rows("held_out", "space")))
    assert all(row["held_out"] for row in rows)


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("nano/trian", 3, "did you mean train?"),
        ("softmax", 2, "softmax is no family of programs; known: nano"),
    ],
)
def test_an_unknown_name_is_an_error_and_leaves_no_file(home, name, code, says):
    done = CliRunner().invoke(cli, ["data", "family", name, "--to", "programs.jsonl"])
    assert (done.exit_code, says in done.stderr) == (code, True), done.stderr
    assert not (home / "programs.jsonl").exists()


def test_conversations_are_written_from_synthetic_verdicts(home):  # noqa: ARG001
    words = ["nano/rehearsal", "--to", "cold.jsonl", "--verdicts", "synthetic", "--count", "20"]
    mix = ["--mix", "hack=0.22", "--mix", "lazy=0.2"]
    done = CliRunner().invoke(cli, ["data", "conversations", *words, *mix])
    assert done.exit_code == 0, done.output
    assert "20 conversations from synthetic verdicts in cold.jsonl" in done.stderr
    rows = [json.loads(line) for line in Path("cold.jsonl").read_text().splitlines()]
    assert [len(row["messages"]) for row in rows] == [6] * 20


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--verdicts", "nothing.gz"], "nothing.gz: no such file"),
        (["--verdicts", "synthetic", "--mix", "hacks=0.2"], "did you mean hack?"),
        (["--verdicts", "synthetic", "--mix", "hack=much"], "'much' is no number"),
        (["--verdicts", "synthetic", "--mix", "hack=0.5"], "sum to 1.38"),
        (["--verdicts", "synthetic", "--mix", "hack"], "hack is nan; give 0 to 1"),
    ],
)
def test_wrong_conversations_are_refused(home, words, says):
    given = ["data", "conversations", "nano/rehearsal", "--to", "cold.jsonl", *words]
    done = CliRunner().invoke(cli, given)
    assert (done.exit_code, says in done.stderr) == (2, True), done.stderr
    assert not (home / "cold.jsonl").exists()
