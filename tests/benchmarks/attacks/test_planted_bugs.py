"""The bar that plants bugs: only a failed test finds a bug, and the tests see the copy alone."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.attacks.planted_bugs.bar import (
    BUGS,
    ROOT,
    copy_of_source,
    plant,
    run_tests,
    stale,
    verdict_of,
)

FAILED = "E   assert 1 == 2\nFAILED tests/unit/test_a.py::test_b - assert 1 == 2\n1 failed"


def test_a_bug_whose_text_is_missing_is_reported_with_its_file():
    bug = dataclasses.replace(BUGS[0], old="no such text")

    assert "'no such text' occurs 0 times in" in stale(bug, ROOT / "src")
    assert "is gone" in stale(dataclasses.replace(bug, file="nowhere.py"), ROOT / "src")


@pytest.mark.parametrize(
    ("code", "text", "found"),
    [
        (1, FAILED, "test_a.py::test_b"),
        (0, "3 passed", ""),
        (2, "ERROR tests/unit/test_a.py - ImportError", ""),
        (1, "ERROR tests/unit/test_a.py::test_b - OSError", ""),
        (1, FAILED.replace("assert 1", "NameError: name 'x'", 1), ""),
        (-1, "no end within 300 s", ""),
    ],
)
def test_only_a_failed_test_finds_a_bug(code, text, found):
    assert verdict_of(code, text) == (found, verdict_of(code, text)[1])
    assert bool(verdict_of(code, text)[1]) == (not found)


def test_tests_import_the_copy_with_the_bug_and_no_other_package(tmp_path):
    clean = copy_of_source(tmp_path / "clean")
    bug = next(bug for bug in BUGS if bug.file == "evaluator/seeds.py")
    (tmp_path / "bug").mkdir()
    planted = plant(bug, clean, tmp_path / "bug")
    assert run_tests(clean, bug.tests)[0] == 0
    assert verdict_of(*run_tests(planted, bug.tests))[0].startswith("test_seeds.py::")

    (planted / "src" / "tilewright").rename(planted / "src" / "elsewhere")
    code, text = run_tests(planted, bug.tests)
    assert code != 0
    assert verdict_of(code, text)[0] == ""
