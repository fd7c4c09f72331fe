"""The entry point: a path that the system refuses gives one line and the code of its command."""

from __future__ import annotations

import os

import pytest
from click.testing import CliRunner

from tilewright.cli.main import cli

LONG = "a" * 300
"""Longer than any name of a file may be."""


def refused(words: list[str], code: int, said: str) -> None:
    done = CliRunner().invoke(cli, words)
    assert isinstance(done.exception, SystemExit), done.exception
    assert (done.exit_code, done.stdout) == (code, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("tilewright: error: ")
    assert said in line


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["explain", LONG], 6, "file name too long"),
        (["explain", f"{LONG}/add_relu#0"], 6, "file name too long"),
        (["eval", "--from-report", LONG], 6, "file name too long"),
        (["view", LONG], 6, "no such folder"),
        (["report", LONG], 6, "no such folder"),
        (["compare", LONG, LONG], 6, "file name too long"),
        (["bench", "--resume", LONG], 6, "no such folder"),
        (["optimize", "--resume", LONG], 6, "no such folder"),
        (["bench", "softmax", "--candidates", LONG], 2, "file name too long"),
        (["eval", LONG, "--problem", "softmax"], 2, "file name too long"),
    ],
)
def test_a_name_that_is_too_long_is_an_error_of_the_command(words, code, said):
    refused(words, code, said)


def test_an_error_of_the_system_that_no_command_expects_is_one_line(tmp_path):
    (tmp_path / "fast.py").write_text("def softmax(x):\n    return x.softmax(-1)\n")
    words = ["eval", "fast.py", "--problem", "softmax", "--python-path", LONG]
    refused(words, 2, f"{LONG}: file name too long")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["explain", "locked/run"], 6),
        (["eval", "--from-report", "locked"], 6),
        (["compare", "locked", "locked/run"], 6),
        (["bench", "softmax", "--candidates", "locked/run"], 2),
        (["eval", "locked/run", "--problem", "softmax"], 2),
    ],
)
def test_a_folder_that_may_not_be_read_is_named_with_the_reason(tmp_path, words, code):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o000)
    try:
        if os.access(locked, os.R_OK):
            pytest.skip("this user may read everything")
        refused(words, code, "you may not use it; change its permissions")
    finally:
        locked.chmod(0o700)
