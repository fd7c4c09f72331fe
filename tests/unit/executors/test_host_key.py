"""Two processes use one warm host only if their keys are equal."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conventions.tree import SOURCE
from tilewright.executors.host_key import host_environment, host_key

HOME = Path("/tmp/home")
BASE = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
SHOW = "from pathlib import Path; from tilewright.executors.host_key import host_key as k; "
SHOW += "print(k(Path('/tmp/home'), {}))"


def key(**variables: str) -> str:
    return host_key(HOME, host_environment({**BASE, **variables}))


def test_equal_processes_have_one_key_whatever_their_terminal():
    assert key() == key(TERM="xterm", PWD="/elsewhere", SHLVL="3", COLUMNS="80")


@pytest.mark.parametrize(
    "variables",
    [{"CUDA_VISIBLE_DEVICES": "1"}, {"PATH": "/usr/bin"}, {"PYTHONPATH": "/x"}, {"ANY": "1"}],
)
def test_other_variables_give_another_key(variables):
    assert key(**variables) != key()


def test_another_home_gives_another_key():
    assert host_key(Path("/tmp/other"), BASE) != host_key(HOME, BASE)


def test_relative_folders_are_those_of_the_working_folder(tmp_path, monkeypatch):
    here = key(PYTHONPATH="src")
    monkeypatch.chdir(tmp_path)
    assert key(PYTHONPATH="src") != here
    assert key(PYTHONPATH="src") == key(PYTHONPATH=str(tmp_path / "src"))
    assert key() == key(PWD=str(tmp_path))


def test_another_working_folder_alone_gives_the_same_key(tmp_path, monkeypatch):
    here = key()
    monkeypatch.chdir(tmp_path)
    assert key() == here


def in_a_process(limit: int | None = None, package: Path = SOURCE.parent) -> str:
    def lower() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))

    return subprocess.run(
        [sys.executable, "-P", "-c", SHOW],
        env={**os.environ, "PYTHONPATH": str(package)},
        preexec_fn=lower,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_other_limits_give_another_key():
    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    assert in_a_process() == in_a_process()
    assert in_a_process(limit=99_999 if most == -1 else most - 1) != in_a_process()


def test_a_changed_file_of_the_package_gives_another_key(tmp_path):
    left_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE, tmp_path / "tilewright", ignore=left_out)
    before = in_a_process(package=tmp_path)
    assert before == in_a_process(package=tmp_path)
    changed = tmp_path / "tilewright" / "evaluator" / "verdict.py"
    changed.write_text(changed.read_text() + "\n")
    assert in_a_process(package=tmp_path) != before


def test_a_changed_file_of_a_plug_in_gives_another_key(tmp_path, monkeypatch):
    info = tmp_path / "someones-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: someones\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[tilewright.checks]\nzeta = someones:Check\n")
    module = tmp_path / "someones.py"
    module.write_text("raise RuntimeError('imported')\n")
    before = key()
    monkeypatch.syspath_prepend(tmp_path)
    installed = key()
    module.write_text("raise RuntimeError('imported again')\n")
    assert len({before, installed, key()}) == 3
