"""`tilewright optimize`, `bench --model` and `view` on the command line, without judging."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.unit.loop.test_rollout import CODE, play
from tilewright.cli.main import cli
from tilewright.cli.optimize import print_end


def invoke(*words):
    return CliRunner().invoke(cli, list(words))


SEARCH = ("optimize", "softmax", "--model", "recorded:bundled")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["optimize"], 2, "--model"),
        (["optimize", "softmax"], 2, "--model"),
        (["optimize", "nothing_like_it", "--model", "recorded:bundled"], 3, "nothing_like_it"),
        (["optimize", "softmax", "--model", "recorded:nowhere"], 6, "nowhere"),
        (["optimize", "softmax", "--model", "scripted:nowhere.py"], 5, "nowhere.py"),
        (["optimize", "softmax", "--model", "local:nowhere"], 5, "nowhere"),
        (["optimize", "--resume", "nowhere"], 6, "nowhere"),
        (["optimize", "softmax", "--resume", "nowhere"], 2, "leave out problem"),
        (["optimize", "--resume", "nowhere", "--from", "home"], 2, "leave out --from"),
        (
            ["optimize", "softmax", "--model", "recorded:bundled", "--turns", "0"],
            2,
            "--turns 0: expected at least 1",
        ),
        (
            ["optimize", "softmax", "--model", "recorded:bundled", "--strategy", "x"],
            2,
            "sequential",
        ),
        (
            ["optimize", "softmax", "--model", "recorded:bundled", "--set", "loop.options={q: 1}"],
            2,
            "its options: context, w",
        ),
        (
            [*SEARCH, "--strategy", "beam", "--turns", "4"],
            2,
            "needs at least 8 requests, and there are 4",
        ),
        (
            [*SEARCH, "--strategy", "mtmc", "--set", "loop.options.decision=sample"],
            2,
            "states none: give models.decider.name",
        ),
        (["bench", "softmax", "--model", "recorded:bundled", "--candidates", "x"], 2, "--model"),
        (["view", "nowhere"], 6, "nowhere"),
        (["view", "."], 6, "no run: it has no events.jsonl"),
    ],
)
def test_bad_input_is_one_line_and_an_exit_code(words, code, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke(*words)
    assert result.exit_code == code, result.output
    lines = [line for line in result.output.splitlines() if "error:" in line]
    assert len(lines) == 1
    assert says in lines[0]


def test_a_key_that_is_missing_is_named_and_never_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    result = invoke("optimize", "softmax", "--model", "some-model")
    assert result.exit_code == 2
    assert "OPENAI_API_KEY is empty" in result.output


def test_view_prints_turns_and_writes_a_page(tmp_path):
    (tmp_path / "run").mkdir()
    play(tmp_path / "run", lambda *_: CODE)
    result = invoke("view", str(tmp_path / "run"), "--json")
    assert [row["verdict"] for row in json.loads(result.output)["turns"]] == ["correct"] * 3
    target = tmp_path / "page.html"
    assert invoke("view", str(tmp_path / "run"), "--export", str(target)).exit_code == 0
    assert "def softmax" in target.read_text()
    assert target.stat().st_size < 8_000_000


def test_a_best_candidate_that_fails_its_re_check_is_named_with_the_reason(capsys):
    winner = {"file": "w.py", "verdict": "rejected", "speedup": None, "reason": "it burned CPU"}
    print_end({"winners": {"p": winner}, "ended_for": None, "stopped": None}, Path("runs/r"))

    assert "p: measured once more: rejected (it burned CPU); w.py" in capsys.readouterr().err
