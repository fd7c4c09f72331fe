"""The prose check refuses what it was written for, and reads past code, tables and questions."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from enum import EnumType
from types import ModuleType

import pytest
import yaml

from tests.conventions.tree import ROOT
from tilewright.records import codes
from tilewright.wire.names import ISOLATION_LAYERS

REFUSED = yaml.safe_load((ROOT / "tests/conventions/refused_prose.yaml").read_text())


def rules() -> ModuleType:
    name = "_prose_rules"
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


RULES = rules()


def broken(text: str, **options: int) -> list[str]:
    return [item.rule for item in RULES.check_prose("page.md", text, **options)]


def test_there_are_twenty_refused_passages():
    assert [item["row"] for item in REFUSED] == list(range(1, 21))


@pytest.mark.parametrize(
    "passage", [text for item in REFUSED for text in item["passages"]], ids=lambda text: text[:40]
)
def test_each_refused_passage_yields_a_finding(passage):
    assert broken(passage)


def test_a_sentence_of_twenty_six_words_is_too_long():
    assert broken("word " * 24 + "end.") == []
    assert broken("word " * 25 + "end.") == ["26 words, most 25"]
    assert broken("word " * 25 + "end.", max_words=30) == []


def test_words_are_counted_over_lines_but_not_over_list_items():
    assert broken("word " * 20 + "\n" + "word " * 20 + ".") == ["40 words, most 25"]
    assert broken("- " + "word " * 20 + "\n- " + "word " * 20 + ".") == []
    assert broken("- " + "word " * 20 + "\n  " + "word " * 20 + ".") == ["40 words, most 25"]


def test_inline_code_and_a_link_address_are_one_word():
    assert broken("word " * 24 + "`a b c d e f`.") == []
    assert broken("word " * 24 + "[x](a_long/path.md).") == []
    assert broken("Ask for `a door`, [a door](b.md)") == ["retired 'door'"]


def test_code_blocks_and_tables_are_not_prose():
    long = "word " * 40
    assert broken(f"```text\n{long}\n```\n") == []
    assert broken(f"Before.\n\n    {long}\n\nAfter.") == []
    assert broken(f"| a | b |\n| --- | --- |\n| {long} | a door |\n") == []
    assert broken(f"```text\ncode\n```\n{long}") == ["40 words, most 25"]


def test_the_lines_of_a_docstring_section_are_prose_of_their_own():
    section = f"Do it.\n\nRaises:\n    A: {'word ' * 20}\n    B: {'word ' * 20}\n"
    assert broken(section) == []
    assert broken(f"Do it.\n\nRaises:\n    A: {'word ' * 30}\n") == ["31 words, most 25"]


@pytest.mark.parametrize("word", ["What", "Who", "Whoever", "Nobody"])
def test_a_subject_clause_may_not_open_a_sentence(word):
    assert f"opens with {word!r}" in broken(f"It works. {word} is late waits.")
    assert f"opens with {word!r}" not in broken(f"{word} is late?")
    assert f"opens with {word!r}" not in broken(f"# {word} is late")


def test_an_abbreviation_does_not_end_a_sentence():
    assert broken("word " * 15 + "e.g. " + "word " * 15) == ["31 words, most 25"]


def test_a_finding_names_the_line_of_its_sentence():
    (found,) = RULES.check_prose("page.md", "One.\n\nTwo.\nA door opens.\n", line=10)
    assert (found.path, found.line) == ("page.md", 13)


def test_a_changelog_bullet_is_short_and_opens_with_the_type_of_change():
    def found(text: str) -> list[str]:
        return [item.rule for item in RULES.check_bullets("CHANGELOG.md", text)]

    assert found("- Fixed: the server starts.\n") == []
    assert found(f"- Fixed: {'x' * 194}\n") == ["201 characters, most 200"]
    assert len(found("- The server starts.\n")) == 1
    assert len(found("Text without a bullet is not a change.\n")) == 0


@pytest.mark.parametrize(
    ("name", "parts"),
    [("DoorKeeper", ["Door"]), ("said_so_us", ["said"]), ("timestamp", []), ("keywords", [])],
)
def test_a_retired_term_may_be_no_part_of_a_name(name, parts):
    found = RULES.check_name("a.py", 1, "field", name)
    assert [item.rule for item in found] == [f"retired {part!r} in a field name" for part in parts]


def test_the_repository_has_no_finding():
    command = [sys.executable, str(ROOT / "docs" / "_prose.py")]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert answer.returncode == 0, answer.stdout + answer.stderr


GLOSSARY = (ROOT / "docs" / "explanation" / "glossary.md").read_text(encoding="utf-8")
MAX_TERMS = 120
REQUIRED_TERMS = (
    *("problem", "case", "candidate", "baseline", "implementation", "judge", "runner"),
    *("supervisor", "sandbox", "isolation layer", "verdict", "finding", "label", "protocol"),
    *("input sample", "input variation", "tolerance", "process-to-process variation"),
    *("process replicate", "ABBA block", "launch suppression", "lease", "trial", "estimate"),
    *("turn", "trajectory", "rollout", "run", "strategy", "archive", "operator", "selector"),
    *("engine", "integration"),
)


def glossary_rows(page: str) -> list[list[str]]:
    table = page.partition("\n## Terms\n")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def glossary_faults(page: str) -> list[str]:
    rows = glossary_rows(page)
    terms = [row[0] for row in rows]
    found = [f"{len(rows)} terms, most {MAX_TERMS}"] if len(rows) > MAX_TERMS else []
    found += [f"{term}: defined twice" for term in sorted({t for t in terms if terms.count(t) > 1})]
    found += [f"{term}: missing" for term in REQUIRED_TERMS if term not in terms]
    for row in rows:
        if len(row) != 3 or not all(row):
            found.append(f"{row[0]}: needs a definition and a source")
        elif len(re.findall(r"\.(?:\s|$)", row[1])) not in (1, 2):
            found.append(f"{row[0]}: the definition has one or two sentences")
        elif "tilewright" in row[2] or re.search(r"\]\((?!https://)", row[2]):
            found.append(f"{row[0]}: the source lies inside this project")
    return found


def visible_codes() -> set[str]:
    """Return the codes that reports may hold: of findings, labels, layers, stages and reasons."""
    enums = [value for value in vars(codes).values() if isinstance(value, EnumType)]
    assert codes.FailureReason in enums
    return {member.value for enum in enums for member in enum} | set(ISOLATION_LAYERS)


def test_the_glossary_has_few_terms_with_a_definition_and_an_outside_source():
    assert glossary_faults(GLOSSARY) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("| turn |", "| a |  | s |\n| turn |", "a: needs a definition and a source"),
        ("| turn |", "| a | It is b. |  |\n| turn |", "a: needs a definition and a source"),
        ("| turn |", "| a | It is b. | [c](c.md) |\n| turn |", "a: the source lies inside"),
        ("| turn |", "| a | A. B. C. | s |\n| turn |", "a: the definition has one or two"),
        ("| turn |", "| trial | B. | s |\n| turn |", "trial: defined twice"),
        ("| turn |", "| answer |", "turn: missing"),
        (
            "| turn |",
            "".join(f"| a{n} | B. | s |\n" for n in range(121)) + "| turn |",
            f"{len(glossary_rows(GLOSSARY)) + 121} terms",
        ),
    ],
)
def test_a_faulty_glossary_is_found(old, new, fault):
    assert any(found.startswith(fault) for found in glossary_faults(GLOSSARY.replace(old, new)))


def unexplained(page: str) -> list[str]:
    return sorted(visible_codes() - set(re.findall(r"`([a-z0-9_]+)`", page)))


def test_the_glossary_explains_every_code_of_a_report():
    assert unexplained(GLOSSARY) == []
    assert unexplained(GLOSSARY.replace("`rlimits`", "")) == ["rlimits"]
