"""The entry point: a path that the system refuses gives one line and the code of its command."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from tilewright.cli.main import cli

LONG = "a" * 300
"""Longer than any name of a file may be."""
_VERSION_3 = 0x20080522
_PASS_PERMISSIONS = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: with them, root reads every file."""
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def bound_by_permissions() -> Iterator[None]:
    """Let permissions of files count for this thread, also if it is root's."""
    header, data = struct.pack("=Ii", _VERSION_3, 0), ctypes.create_string_buffer(24)
    assert _libc.capget(header, data) == 0
    effective, *others = struct.unpack("=6I", data.raw)
    assert _libc.capset(header, struct.pack("=6I", effective & ~_PASS_PERMISSIONS, *others)) == 0
    try:
        yield
    finally:
        assert _libc.capset(header, data.raw) == 0


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
    with bound_by_permissions():
        refused(words, code, "you may not use it; change its permissions")
    locked.rmdir()
