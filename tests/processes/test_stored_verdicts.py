"""`tilewright data verdicts` evaluates programs, and the world `book` finds their verdicts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright import config
from tilewright.families.nano.compositions import COMPOSITIONS
from tilewright.families.nano.program_slots import Fault, census
from tilewright.families.nano.program_text import render
from tilewright.problems.imported_sets import family_problems
from tilewright.rl.book_world import open_book
from tilewright.rl.verdict_store import VerdictStore

pytest.importorskip("torch")
pytest.importorskip("triton")
FAULTS = (Fault.SYNTAX, Fault.ENTRY)


def verdicts(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tilewright", "data", "verdicts", COMPOSITIONS[0].id]
    settings = ["--set", f"home={folder / 'home'}"]
    return subprocess.run(
        [*command, "--to", "store.gz", *words, *settings],
        cwd=folder,
        capture_output=True,
        text=True,
    )


def test_programs_are_evaluated_once_and_found_by_the_book(tmp_path):
    broken = [item for item in census(COMPOSITIONS[0]) if item.fault in FAULTS]
    words = ["--json"]
    for number, program in enumerate(broken):
        (tmp_path / f"{number}.py").write_text(render(program))
        words += ["--program", f"{number}.py"]
    done = verdicts(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["evaluated"], found["unjudged"], found["left"]) == (2, 0, 0)
    again = verdicts(tmp_path, *words)
    assert json.loads(again.stdout)["evaluated"] == 0
    (problem,) = family_problems(COMPOSITIONS[0].name)
    settings = config.load(None, ["eval.rules.require_custom_kernel=true"])
    world = open_book(settings, tmp_path, lambda *_: None, tmp_path / "store.gz")
    assert world.problems(problem.id) == [problem]
    for program in broken:
        (summary,) = VerdictStore.read(tmp_path / "store.gz").evaluations(problem, render(program))
        assert summary.verdict == "failed"


def test_a_program_needs_one_problem(tmp_path):
    command = [sys.executable, "-m", "tilewright", "data", "verdicts", "nano"]
    words = ["--to", "store.gz", "--program", "x.py"]
    done = subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--program needs one problem, and nano has 12" in done.stderr
