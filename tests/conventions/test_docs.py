"""Documents: generated pages are fresh, links resolve, code runs.

A fenced block that opens with "```python run" or "```sh run" is executed: the blocks of one page,
in order, as one program in an empty folder. Every other Python block must at least be Python.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import math
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conventions.tree import ROOT, SOURCE, name_of, parsed, python_files, tracked
from tilewright.evaluator.timing.replicate_policy import DEFAULT_POLICY

PAGES = [path for path in tracked() if path.suffix == ".md"]
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
ADR_HEADINGS = ["Context", "Decision", "Consequences", "How to undo"]


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def blocks(path: Path, info: str) -> list[str]:
    return [body for head, body in FENCE.findall(text_of(path)) if head.split() == info.split()]


def slugs(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text_of(path)), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


def test_generated_pages_are_fresh():
    command = [sys.executable, str(ROOT / "docs" / "_generate.py"), "--check"]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")


def test_every_exception_is_documented():
    page = text_of(ROOT / "docs" / "reference" / "errors.md")
    classes = [
        node
        for path in python_files(under=SOURCE)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef)
    ]
    known = {name for name in dir(builtins) if is_builtin_exception(name)}
    size = 0
    while size != len(known):
        size = len(known)
        for node in classes:
            if any(ast.unparse(base).rpartition(".")[2] in known for base in node.bases):
                known.add(node.name)
    ours = {node.name for node in classes} & known
    assert ours
    assert not [name for name in sorted(ours) if name[0] != "_" and f"| `{name}` |" not in page]


def test_the_tests_that_pages_name_exist():
    functions = {
        node.name
        for path in python_files(under=ROOT / "tests")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef)
    }
    named = {name for page in PAGES for name in re.findall(r"`(test_\w+)[`\[]", text_of(page))}
    assert named
    assert named <= functions


def test_the_layers_on_the_pages_are_those_of_the_import_contract():
    contracts = tomllib.loads(text_of(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layers = next(item["layers"] for item in contracts if item["type"] == "layers")
    for page in ("CONTRIBUTING.md", "docs/explanation/architecture.md"):
        assert "```text\n" + "\n".join(layers) + "\n```" in text_of(ROOT / page)


def is_builtin_exception(name: str) -> bool:
    thing = getattr(builtins, name)
    return isinstance(thing, type) and issubclass(thing, BaseException)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_resolve(page):
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text_of(page))):
        if re.match(r"[a-z]+:", target):
            continue
        place, _, anchor = target.partition("#")
        # towncrier moves a fragment into CHANGELOG.md, at the root.
        folder = ROOT if page.parent.name == "changelog.d" else page.parent
        path = (folder / place).resolve() if place else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in slugs(path)):
            wrong.append(target)
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_blocks_are_python(page):
    for info in ("python", "python run"):
        for block in blocks(page, info):
            ast.parse(block)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python run")], ids=name_of)
def test_python_blocks_run(page, tmp_path):
    # A file, as a reader has it: functions of `python -c` have no source text.
    program = tmp_path / "program.py"
    program.write_text("\n".join(blocks(page, "python run")), encoding="utf-8")
    answer = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "sh run")], ids=name_of)
def test_shell_blocks_run(page, tmp_path):
    program = "\n".join(["set -eu", *blocks(page, "sh run")])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    answer = subprocess.run(
        ["bash", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
    )
    assert answer.returncode == 0, answer.stderr


def all_text(pages: list[Path]) -> str:
    return "\n".join(text_of(page) for page in pages)


def test_decisions_are_numbered_and_complete():
    pages = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
    numbers = [int(page.name[:4]) for page in pages]
    for line in re.findall(r"^Status: .*Replaces ((?:\d+, )+\d+),", all_text(pages), re.MULTILINE):
        numbers += [int(number) for number in line.split(", ")]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    for page in pages:
        found = re.findall(r"^## (.*)$", text_of(page), re.MULTILINE)
        assert found == ADR_HEADINGS, name_of(page)
        assert len(text_of(page).splitlines()) <= 60, name_of(page)


def test_the_index_lists_every_decision_and_every_experiment():
    listed = text_of(ROOT / "docs" / "index.md")
    pages = [page for folder in ("adr", "lab") for page in (ROOT / "docs" / folder).glob("*.md")]
    assert [name_of(page) for page in pages if page.name not in listed] == []


EXPLAINED = [page for page in PAGES if name_of(page).startswith(("docs/adr/", "docs/explanation/"))]
PATH_ROOTS = (ROOT, SOURCE, *(SOURCE / name for name in ("cli", "evaluator", "executors")))


def missing_paths(text: str) -> list[str]:
    """Return the Python files and packages with a slash in their name that do not exist."""
    named = re.findall(r"`([a-z][\w/]*/\w+(?:\.py|\.h)?)`", text)
    return [path for path in named if not any((root / path).exists() for root in PATH_ROOTS)]


@pytest.mark.parametrize("page", EXPLAINED, ids=name_of)
def test_the_source_paths_that_a_page_names_are_there(page):
    placeholders = ("FAMILY.py", "NAME.py")
    assert not [path for path in missing_paths(text_of(page)) if not path.endswith(placeholders)]


def test_a_path_that_is_not_there_is_found():
    text = "`loop/driver.py`, `evaluator/timing`, `evaluator/luck.py` and `luck/luck`"
    assert missing_paths(text) == ["evaluator/luck.py", "luck/luck"]


def constants_of(*packages: str) -> dict[str, object]:
    """Return the upper-case names of the modules of some packages, with their values."""
    found: dict[str, object] = {}
    for name in packages:
        package = importlib.import_module(name)
        for item in pkgutil.iter_modules(package.__path__, f"{name}."):
            found |= {
                k: v for k, v in vars(importlib.import_module(item.name)).items() if k.isupper()
            }
    return found


def number(text: str) -> float:
    """Return the number of a cell, such as `4`, `4 Mi` or `log 1.2`."""
    if text.startswith("log "):
        return math.log(float(text.removeprefix("log ")))
    value, _, prefix = text.partition(" ")
    return float(value) * {"": 1, "Mi": 1 << 20}[prefix]


def test_decision_42_has_the_constants_of_today():
    (page,) = (ROOT / "docs" / "adr").glob("0042-*.md")
    known = constants_of("tilewright.evaluator.timing", "tilewright.scoring")
    known |= {f"ReplicatePolicy.{name}": value for name, value in vars(DEFAULT_POLICY).items()}
    rows = re.findall(r"^\| (`[A-Z].*?) \| (.*?) \|", text_of(page), re.MULTILINE)
    assert len(rows) >= 16
    for names, values in rows:
        wanted = [number(value) for value in values.split("; ")]
        found = [known[name] for name in re.findall(r"`([A-Z][\w.]*)`", names)]
        sigmas = getattr(found[0], "sigmas", None)
        assert list(sigmas or found) == pytest.approx(wanted), names


def test_every_setting_has_a_meaning():
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text_of(ROOT / "docs/reference/config.md").splitlines()
        if line.startswith("| `")
    ]
    assert len(rows) > 150
    assert [row[0] for row in rows if not row[-1]] == []
