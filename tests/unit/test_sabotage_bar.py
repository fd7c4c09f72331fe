"""The bar that plants bugs: each can be planted, and only a failed test has found one."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.sabotage import BUGS, ROOT, copy_of_source, plant, run_tests, stale, verdict_of

FAILED = "E   assert 1 == 2\nFAILED tests/unit/test_a.py::test_b - assert 1 == 2\n1 failed"


def test_every_bug_can_be_planted_and_has_its_tests():
    assert [text for bug in BUGS if (text := stale(bug, ROOT / "src"))] == []
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert len({(bug.file, bug.old, bug.new) for bug in BUGS}) == len(BUGS)
    for bug in BUGS:
        for test in bug.tests:
            file, _, name = test.partition("::")
            assert f"def {name}" in (ROOT / file).read_text(encoding="utf-8"), test


def test_a_bug_whose_place_is_gone_is_named():
    bug = dataclasses.replace(BUGS[0], old="no such text")

    assert "'no such text' stands 0 times in" in stale(bug, ROOT / "src")
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
def test_only_a_failed_test_has_found_a_bug(code, text, found):
    assert verdict_of(code, text) == (found, verdict_of(code, text)[1])
    assert bool(verdict_of(code, text)[1]) == (not found)


def test_the_tests_see_the_copy_and_nothing_else(tmp_path):
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
