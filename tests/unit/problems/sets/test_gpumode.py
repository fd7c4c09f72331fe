"""Tasks in GPU MODE's format: what becomes a problem, and what is refused by name and reason."""

from __future__ import annotations

import os
import re

import pytest

from tests.gpumode_tasks import (
    OTHER_CHECK,
    OWN_CHECK,
    REFERENCE,
    RIGHT,
    SIZED_CHECK,
    YML,
    with_check,
    write_task,
)
from tilewright.errors import ProblemError
from tilewright.problems.candidates import make_candidate
from tilewright.problems.sets.gpumode import SET
from tilewright.records import Candidate, SourceFile


def test_a_task_becomes_a_problem_with_its_sizes_tolerances_and_licence(tmp_path):
    write_task(tmp_path)
    found = SET.read(tmp_path, "r1")
    assert found.skipped == []
    (problem,) = found.problems
    assert (problem.id, problem.entry, problem.revision) == (
        *("gpumode/small/add", "custom_kernel", "r1"),
    )
    assert [case.name for case in problem.cases] == ["test 1", "test 2", "benchmark 1"]
    assert problem.cases[1].params == {"place": 1, "rows": 5, "scales": "[1, 2]"}
    # The rtol of the task, and the atol of its own helpers.
    assert problem.tolerances == (1e-3, 1e-6)
    assert problem.licence.endswith("A Licence of Our Own, Version 7")
    assert "writes the sum" not in problem.source.text
    assert "never run" not in problem.source.text


def test_a_candidate_gets_the_modules_that_it_imports_and_never_the_reference(tmp_path):
    write_task(tmp_path)
    (problem,) = SET.read(tmp_path, "").problems

    def files(text):
        made = make_candidate((SourceFile(path="submission.py", text=text),), problem)
        candidate = made if isinstance(made, Candidate) else made[0]
        return [file.path for file in candidate.files]

    assert files(RIGHT) == ["submission.py", "task.py"]
    assert files(RIGHT.replace("from task import Pair", "Pair = tuple")) == ["submission.py"]
    assert "reference.py" not in files(RIGHT + "\nimport utils, reference\n")


def test_a_check_that_compares_exactly_has_no_tolerance(tmp_path):
    write_task(tmp_path, reference=with_check(OWN_CHECK))
    (problem,) = SET.read(tmp_path, "").problems
    assert problem.tolerances == (0.0, 0.0)


@pytest.mark.parametrize(
    ("yml", "reference", "reason"),
    [
        (YML, with_check(OTHER_CHECK), "line 23 calls bool, so the task stays unjudged"),
        (YML, with_check(SIZED_CHECK), "the rtol of check_implementation depends on the inputs"),
        (YML, with_check(""), "defines no check_implementation"),
        (YML, with_check("check_implementation = lambda *_: True"), "not made by"),
        (YML, REFERENCE.replace("def generate_input", "def inputs"), "no generate_input"),
        (YML, "def broken(:\n", "not Python"),
        (YML + "multi_gpu: true\n", REFERENCE, "several GPUs"),
        (YML.replace('"py"', '"cu"'), REFERENCE, "lang is 'cu'"),
        (YML.replace('"../utils.py"', '"../../../../secret.py"'), REFERENCE, "outside of"),
        (YML.replace('"../utils.py"', '"/etc/passwd"'), REFERENCE, "outside of"),
        (YML.replace('"../utils.py"', '"link.py"'), REFERENCE, "a link"),
        (YML.replace('"utils.py"', '"../utils.py"'), REFERENCE, "leads out of"),
        (YML.replace('"../utils.py"', '"gone.py"'), REFERENCE, "cannot be read"),
        (YML.replace("benchmarks:", "benchmarks: 3\nother:"), REFERENCE, "not a list of sizes"),
        ("files: [", REFERENCE, "not YAML"),
        ("- 1", REFERENCE, "not a mapping"),
    ],
)
def test_a_task_that_cannot_be_judged_is_refused_by_name_and_reason(
    tmp_path, yml, reference, reason
):
    write_task(tmp_path / "clone", "good")
    bad = write_task(tmp_path / "clone", "bad", yml, reference)
    (tmp_path / "secret.py").write_text("SECRET = 1\n")
    os.symlink(tmp_path / "clone" / "problems" / "small" / "utils.py", bad / "link.py")
    found = SET.read(tmp_path / "clone", "")
    assert [problem.id for problem in found.problems] == ["gpumode/small/good"]
    (text,) = found.skipped
    assert "small/bad/" in text
    assert re.search(reason, text), text


def test_a_folder_without_tasks_is_refused(tmp_path):
    with pytest.raises(ProblemError, match=r"no task\.yml"):
        SET.read(tmp_path, "")
