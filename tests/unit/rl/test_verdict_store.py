"""The store of verdicts: what it keeps, and what it refuses."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conventions.tree import ROOT
from tilewright.errors import ConfigError, RecordError
from tilewright.problems.imported_sets import family_problems, find_problems
from tilewright.records import Rules
from tilewright.records.base import digest_text
from tilewright.records.events import EvalSummary
from tilewright.rl.synthetic_verdicts import synthetic_store
from tilewright.rl.verdict_store import StoreKey, VerdictStore, chosen

KEY = StoreKey(evaluator="0.1.0", device="a GPU")
PROBLEM, OTHER = family_problems("train")[:2]
RIGHT = EvalSummary(protocol="strict", verdict="correct", speedup=1.5, low=1.4, high=1.6)
WRONG = EvalSummary(protocol="strict", verdict="incorrect", reason="values")


@pytest.fixture
def path(tmp_path):
    store = VerdictStore.read(tmp_path / "verdicts.jsonl.gz", KEY)
    store.add(PROBLEM, "a\n", RIGHT)
    store.add(PROBLEM, "a\n", RIGHT.model_copy(update={"speedup": 1.52, "report": "x/y"}))
    store.add(OTHER, "a\n", WRONG)
    store.save()
    return store.path


def test_what_was_saved_is_read_again(path):
    store = VerdictStore.read(path, KEY)
    assert [item.speedup for item in store.evaluations(PROBLEM, "a\n")] == [1.5, 1.52]
    assert store.evaluations(OTHER, "a\n") == (WRONG,)
    assert store.evaluations(OTHER, "b\n") == ()
    assert len(store) == 2
    assert {row.summary.report for row in store.rows()} == {""}


def test_equal_verdicts_give_equal_files(path):
    before = path.read_bytes()
    VerdictStore.read(path).save()
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"evaluator": "0.2.0"}, "its evaluator is 0.1.0, and 0.2.0 is wanted"),
        ({"device": "another GPU"}, "its device is a GPU, and another GPU is wanted"),
        ({"rules": Rules(precision="fp32")}, "precision='fp32'"),
        ({"protocol": "official"}, "its protocol is strict, and official is wanted"),
    ],
)
def test_verdicts_under_another_key_are_refused_and_both_are_named(path, changes, says):
    with pytest.raises(ConfigError) as error:
        VerdictStore.read(path, KEY.model_copy(update=changes))
    assert says in str(error.value)
    assert error.value.exit_code == 2


def test_a_missing_store_is_named(tmp_path):
    with pytest.raises(ConfigError, match="name a store of verdicts"):
        VerdictStore.read(tmp_path / "nothing.gz")


def damaged(path, change):
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(change(lines))))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda lines: lines[:-1], "promises 3 verdicts"),
        (lambda lines: [*lines[:-1], lines[-1].replace(b"incorrect", b"correct")], "promises 3"),
        (lambda lines: [b"{}\n", *lines[1:]], ":1: "),
        (lambda lines: [lines[0].replace(b'"format":1', b'"format":9'), *lines[1:]], ":1: "),
        (lambda _: [], ":1: "),
    ],
)
def test_a_damaged_store_is_refused(path, change, says):
    damaged(path, change)
    with pytest.raises(RecordError, match=says) as error:
        VerdictStore.read(path)
    assert error.value.exit_code == 6


def test_a_truncated_or_foreign_file_is_refused(path):
    whole = path.read_bytes()
    for data in (whole[:-20], b"no gzip", b""):
        path.write_bytes(data)
        with pytest.raises(RecordError, match=r":\d+.*: a damaged or truncated store"):
            VerdictStore.read(path)


def test_the_line_and_the_program_of_the_damage_are_named(tmp_path):
    """The half of a file of hundreds of verdicts breaks off in one of them."""
    store = synthetic_store(tmp_path / "s.gz", "rehearsal")
    store.save()
    whole, rows = store.path.read_bytes(), list(store.rows())
    store.path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RecordError, match="ends too early") as error:
        VerdictStore.read(store.path)
    number = int(str(error.value).partition(":")[2].partition(" ")[0])
    assert 10 < number < len(rows)
    before = rows[number - 3]
    assert f"after program {digest_text(before.code)[:12]} for {before.problem}" in str(error.value)


def test_a_line_that_is_no_verdict_is_named(path):
    damaged(path, lambda lines: [*lines[:2], b"{}\n", *lines[3:]])
    with pytest.raises(RecordError, match=rf":3 after program \w+ for {PROBLEM.id}: "):
        VerdictStore.read(path)


def test_verdicts_of_two_kinds_of_one_program_are_refused_and_it_is_named(path):
    store = VerdictStore.read(path)
    with pytest.raises(RecordError, match=f"for {PROBLEM.id} is incorrect here and correct"):
        store.add(PROBLEM, "a\n", WRONG)


def test_unjudged_is_no_verdict(path):
    lost = EvalSummary(protocol="strict", verdict="unjudged", reason="no device")
    with pytest.raises(ValueError, match="unjudged"):
        VerdictStore.read(path).add(PROBLEM, "b\n", lost)


def test_a_store_that_is_too_large_is_not_written(path, monkeypatch):
    before = path.read_bytes()
    monkeypatch.setattr("tilewright.rl.verdict_store.MAX_BYTES", 100)
    with pytest.raises(ConfigError, match="begin another store"):
        VerdictStore.read(path).save()
    assert path.read_bytes() == before


def test_the_hash_of_a_request_chooses_among_evaluations():
    two = (RIGHT, RIGHT.model_copy(update={"speedup": 1.52}))
    names = [f"step00001/nano/a.0#{rollout}.{turn}" for rollout in range(500) for turn in range(3)]
    counts = Counter(chosen(two, name).speedup for name in names)
    assert set(counts) == {1.5, 1.52}
    assert 600 < counts[1.5] < 900
    assert [chosen(two, name) for name in names] == [chosen(two, name) for name in names]


@given(st.text(max_size=60), st.integers(0, 2**31))
def test_any_text_of_a_program_is_kept(tmp_path_factory, code, seed):
    path = tmp_path_factory.mktemp("store") / f"{seed}.gz"
    store = VerdictStore.read(path, KEY)
    store.add(PROBLEM, code, WRONG)
    store.save()
    assert VerdictStore.read(path, KEY).evaluations(PROBLEM, code) == (WRONG,)


def test_the_verdicts_of_a_gpu_belong_to_the_problems_as_they_are_now():
    stored = VerdictStore.read(ROOT / "docs" / "measurements" / "2026-11-28-nano-h100.jsonl.gz")
    digests = {problem.id: problem.digest() for problem in find_problems("nano", Path())}
    rows = list(stored.rows())
    assert len(rows) > 100
    assert {row.problem: row.problem_digest for row in rows}.items() <= digests.items()


def test_a_newer_field_changes_the_digest_of_a_problem_that_uses_it():
    plain = PROBLEM.model_copy(update={"licence": ""})
    assert plain.digest() == PROBLEM.digest()
    for change in ({"licence": "MIT"}, {"tolerances": (0.1, 0.2)}):
        assert PROBLEM.model_copy(update=change).digest() != PROBLEM.digest()
