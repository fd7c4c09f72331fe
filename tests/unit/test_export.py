"""Runs as rows to train on, and conversations of others as runs."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tests.unit import cli_reports as reports
from tests.unit.test_player import CODE, PROBLEM, play
from tilewright.cli.main import cli
from tilewright.loop.export import import_coldstart, trajectory_rows, turn_rows
from tilewright.loop.prompts import opening
from tilewright.records.log import read_events
from tilewright.reports.turns import Turns

MODULE = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.rand(4)]


def get_init_inputs():
    return []
"""


def a_run(folder):
    folder.mkdir()
    script = (reports.incorrect(), reports.unjudged(), reports.correct())
    play(folder, lambda _, ask: f"<think>why</think>answer {ask.turn}\n{CODE}", script=script)
    return folder


def coldstart(rounds=5, **more):
    messages = []
    for number in range(rounds):
        messages.append({"role": "user", "content": f"ask {number}"})
        messages.append({"role": "assistant", "content": f"answer {number}"})
    row = {"uuid": 7, "entry_point": "Model", "original_python_code": MODULE, "num_rounds": rounds}
    return {**row, "messages": messages, **more}


def test_a_row_of_a_turn_has_its_prompt_its_reply_and_every_reward(tmp_path):
    rows = list(turn_rows(a_run(tmp_path / "run")))
    assert [row["verdict"] for row in rows] == ["incorrect", "unjudged", "correct"]
    assert rows[0]["prompt"] == [{"role": "user", "content": opening(PROBLEM, None)}]
    # What was not judged is shown to nobody, and has no reward.
    assert len(rows[2]["prompt"]) == 3
    assert set(rows[1]["rewards"].values()) == {None}
    assert rows[2]["rewards"]["tilewright"] == pytest.approx(2.36)
    assert rows[0]["completion"][0]["content"].startswith("<think>why</think>answer 0")


def test_a_row_of_a_trajectory_is_one_conversation(tmp_path):
    (row,) = trajectory_rows(a_run(tmp_path / "run"))
    roles = [item["role"] for item in row["messages"]]
    # Of the three the second could not be judged, so the last prompt did not show it.
    assert roles == ["user", "assistant"] * 2
    assert "why" not in row["messages"][1]["content"]
    assert [item["turn"] for item in row["turns"]] == [0, 1, 2]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_rows_are_written_and_filtered(tmp_path, suffix):
    run, target = a_run(tmp_path / "run"), tmp_path / f"rows{suffix}"
    words = ["data", "export", str(run), "--to", str(target), "--verdict", "correct"]
    assert CliRunner().invoke(cli, words).exit_code == 0
    if suffix == ".jsonl":
        (row,) = [json.loads(line) for line in target.read_text().splitlines()]
    else:
        from pyarrow import parquet

        (row,) = parquet.read_table(target).to_pylist()
    assert row["verdict"] == "correct"


@pytest.mark.parametrize(
    "words", [["--to", "rows.csv"], ["--to", "x.jsonl", "--rows", "trajectories", "--verdict", "a"]]
)
def test_what_cannot_be_written_is_said(tmp_path, words):
    result = CliRunner().invoke(cli, ["data", "export", str(a_run(tmp_path / "run")), *words])
    assert result.exit_code == 2


def test_conversations_become_a_run_without_a_verdict(tmp_path):
    count, skipped = import_coldstart([coldstart()], tmp_path, "coldstart.parquet")
    assert (count, skipped) == (5, [])
    rows = list(turn_rows(tmp_path))
    assert [row["verdict"] for row in rows] == [None] * 5
    assert [row["completion"][0]["content"] for row in rows] == [f"answer {n}" for n in range(5)]
    assert "ask 4" in rows[4]["prompt"][-1]["content"]
    assert len(list(read_events(tmp_path))) == 11
    assert [row["verdict"] for row in Turns(tmp_path).rows] == ["propose"] * 5


@pytest.mark.parametrize(
    "row",
    [
        {},
        coldstart(messages=[{"role": "assistant", "content": "x"}]),
        coldstart(original_python_code="def ("),
        coldstart(messages=None),
    ],
)
def test_a_row_that_cannot_be_read_is_named_and_the_rest_goes_on(tmp_path, row):
    count, skipped = import_coldstart([row, coldstart()], tmp_path, "some.parquet")
    assert count == 5
    assert len(skipped) == 1
    assert skipped[0].startswith("some.parquet[0]: ")


def test_the_verb_imports_parquet(tmp_path):
    import pyarrow
    from pyarrow import parquet

    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([coldstart(), coldstart(uuid=8)]), path)
    words = ["data", "import", str(path), "--out", str(tmp_path / "runs")]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    (run,) = (tmp_path / "runs").iterdir()
    assert len(Turns(run).rows) == 10


def test_a_file_that_is_not_there_is_an_error():
    assert CliRunner().invoke(cli, ["data", "import", "nowhere.parquet"]).exit_code == 2
