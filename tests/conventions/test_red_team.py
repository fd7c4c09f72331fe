"""The red-team suite: valid headers, a counterpart for each attack, and no attack known by text."""

from __future__ import annotations

import ast
import json

import pytest

from benchmarks.attacks.red_team import Choice, Store
from benchmarks.attacks.red_team_before import TABLE
from benchmarks.attacks.red_team_files import FAMILIES, read_suite, write_generated
from benchmarks.attacks.red_team_verdicts import Row
from benchmarks.bars import ROOT
from tests.conventions.tree import SOURCE

VERDICTS = {"correct", "incorrect", "failed", "rejected", "unjudged"}
KEYS = {
    *("family", "problem", "counterpart", "expect", "finding", "label", "reason", "device"),
    *("language", "settings", "max_s", "python_path", "weakening", "speedup", "source"),
}
FILES = read_suite()


@pytest.mark.parametrize("file", FILES, ids=lambda item: item.name)
def test_a_header_is_valid(file):
    keys = file.file.keys
    assert set(keys) <= KEYS
    assert file.family in FAMILIES
    assert file.path.name.startswith(f"{file.family.lower()}_")
    assert set(file.file.expected) <= VERDICTS
    assert set(file.devices) <= {"cpu", "cuda"}
    assert file.file.title.endswith(".")
    assert file.problem.entry
    if file.kind == "honest":
        assert "correct" in file.file.expected


@pytest.mark.parametrize("file", [f for f in FILES if f.kind == "attacks"], ids=lambda f: f.name)
def test_an_attack_has_a_counterpart_or_says_why_it_has_none(file):
    named = file.file.keys["counterpart"]
    if file.counterpart is None:
        assert named == "reference" or named.startswith("none, ")
        return
    honest = {item.path: item for item in FILES if item.kind == "honest"}
    assert honest[file.counterpart].file.keys["problem"] == file.file.keys["problem"]
    assert set(file.devices) <= set(honest[file.counterpart].devices)


@pytest.mark.parametrize("seed", [1, 2])
def test_generated_files_are_valid_and_follow_from_the_seed(seed, tmp_path):
    first = write_generated(seed, tmp_path / "first")
    again = write_generated(seed, tmp_path / "again")
    other = write_generated(seed + 100, tmp_path / "other")
    texts = [[item.path.read_text() for item in files] for files in (first, again, other)]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]
    for file in first:
        ast.parse(file.path.read_text())
        assert file.family in FAMILIES
        assert file.problem.entry
        assert file.kind == "honest" or (file.counterpart and file.counterpart.is_file())


def test_no_source_names_an_attack_or_repeats_its_title():
    source = "\n".join(path.read_text("utf-8") for path in SOURCE.rglob("*.py"))
    known = [f.name for f in FILES if f.path.stem in source or f.file.title in source]
    assert known == []


def test_the_table_of_earlier_verdicts_names_files_that_exist():
    rows = [json.loads(line) for line in TABLE.read_text("utf-8").splitlines()]
    names = [row["name"] for row in rows]
    assert len(set(names)) == len(names)
    assert set(names) <= {file.name for file in FILES}


@pytest.mark.parametrize("page", ["explanation/trust-model.md", "reference/hacks.md"])
def test_a_page_names_the_defence_against_each_family(page):
    text = (ROOT / "docs" / page).read_text("utf-8")
    missing = [letter for letter in FAMILIES if f"\n| {letter} | " not in text]
    assert missing == []


def test_a_sample_follows_the_commit_and_changes_with_it():
    samples = [Choice(sample=(8, 5), commit=commit).take(FILES) for commit in ("a", "a", "b")]
    names = [[file.name for file in sample] for sample in samples]
    assert [len(sample) for sample in samples] == [13, 13, 13]
    assert names[0] == names[1]
    assert set(names[0]) != set(names[2])


def test_a_killed_run_goes_on_with_its_seed_and_its_rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    store = Store(path)
    seed = store.seed("source", None)
    store.add(Row("attacks/x.py", "attacks", "A", "key", "cpu", "correct", 1.0, (1.2, 1.1, 1.3)))
    store.add(Row("attacks/y.py", "attacks", "A", "other", "cpu", "InfrastructureError", 1.0))
    with path.open("a") as out:
        out.write('{"name": "attacks/z.py", "ki')
    found = Store(path)
    row = found.get("key")
    assert row is not None
    assert row.gains
    assert found.get("other") is None
    assert found.seed("source", None) == seed
