"""Each planted bug still applies to the source as it is, and its tests exist."""

from __future__ import annotations

from benchmarks.attacks.planted_bugs.bar import BUGS, ROOT, stale


def test_every_planted_bug_applies_and_its_tests_exist():
    assert [text for bug in BUGS if (text := stale(bug, ROOT / "src"))] == []
    for bug in BUGS:
        for test in bug.tests:
            file, _, name = test.partition("::")
            assert f"def {name}" in (ROOT / file).read_text(encoding="utf-8"), test


def test_no_bug_is_planted_twice():
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert len({(bug.file, bug.old, bug.new) for bug in BUGS}) == len(BUGS)
