"""Sizes, characters, names and paths."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conventions.tree import ROOT, SOURCE, name_of, parsed, python_files, texts

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
# Files and functions above the limits. These sets may only shrink.
LONG_FILES: set[str] = set()
LONG_FUNCTIONS: set[str] = set()

# Spelled in pieces, so that this file does not hold what it forbids.
REGISTRIES = ("pypi" + r"\.org", "python" + r"hosted\.org", r"download\.py" + r"torch\.org")
HOMES = r"(?<![\w.~-])/(?:home|Users)/[a-z][\w-]*|(?<![\w.~-])/ro" + r"ot/[\w.]"
CHECKOUTS = r"(?<![\w.~$}*-])/(?!srv/run/)(?:[\w.-]+/)+(?:src/tilewright|\.venv)/"
"""Any checkout or environment by its absolute path; stored reports say `/srv/run` instead."""


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield f"{name_of(path)}:{node.name}", node.end_lineno - node.lineno + 1


def test_files_are_short():
    long = {
        name_of(path)
        for path in python_files()
        if len(path.read_text(encoding="utf-8").splitlines()) > MAX_FILE_LINES
    }
    assert long == LONG_FILES


def test_functions_are_short():
    long = {
        name
        for path in python_files()
        for name, lines in functions(path)
        if lines > MAX_FUNCTION_LINES
    }
    assert long == LONG_FUNCTIONS


def test_text_is_ascii():
    wrong = []
    for path in texts():
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            if not line.isascii():
                wrong.append(f"{name_of(path)}:{number}")
    assert not wrong


def prints(path: Path) -> Iterator[ast.Call]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print":
            yield node


def test_python_is_parsed_in_one_place():
    """`ast.parse` is not safe in threads; `parse_tree` takes turns."""
    by_hand = [path for path in python_files(under=SOURCE) if "ast.parse(" in path.read_text()]
    assert [path.name for path in by_hand] == ["syntax.py"]


def test_only_the_command_line_prints():
    wrong = []
    for path in python_files(under=SOURCE):
        if path.is_relative_to(SOURCE / "cli"):
            continue
        for call in prints(path):
            # A runner may write to its own stderr, as the interpreter does.
            target = {key.arg: ast.unparse(key.value) for key in call.keywords}.get("file")
            if not (path.is_relative_to(SOURCE / "runner") and target == "sys.stderr"):
                wrong.append(f"{name_of(path)}:{call.lineno}")
    assert not wrong


def exported(path: Path) -> list[str] | None:
    for node in parsed(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return None


def defined(path: Path) -> set[str]:
    found: set[str] = set()
    for node in parsed(path).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            found |= {ast.unparse(target) for target in node.targets}
        elif isinstance(node, ast.AnnAssign):
            found.add(ast.unparse(node.target))
    return found


def export_order(name: str) -> tuple[int, str]:
    constant = name.isupper() and len(name) > 1
    return (0 if constant else 1 if name[0].isupper() else 2), name


def test_exports_are_sorted_and_exist():
    wrong = []
    for path in python_files(under=SOURCE):
        names = exported(path)
        if names is None:
            continue
        if names != sorted(set(names), key=export_order):
            wrong.append(f"{name_of(path)}: __all__ is not sorted, or holds a name twice")
        lazy = "__getattr__" in defined(path)
        missing = set(names) - defined(path)
        if missing and not lazy:
            wrong.append(f"{name_of(path)}: __all__ names {sorted(missing)}, which do not exist")
    assert not wrong


def search(pattern: str) -> list[str]:
    found = []
    for path in texts():
        text = path.read_text(encoding="utf-8", errors="replace")
        for match in re.finditer(pattern, text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{name_of(path)}:{line}: {match[0]}")
    return found


def test_no_path_of_a_machine():
    assert not search(HOMES)
    assert not search(CHECKOUTS)
    if len(ROOT.parts) > 2:
        assert not search(rf"(?<![\w.~-]){re.escape(str(ROOT))}(?![\w-])")


def test_no_package_registry():
    assert not search("|".join(REGISTRIES))


def installed() -> set[str]:
    return {item.name for item in importlib.metadata.distributions()}


def test_no_registry_of_this_machine():
    if "pip" not in installed():
        pytest.skip("pip is not here, so it has no configuration to look for")
    command = [sys.executable, "-m", "pip", "config", "list"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    hosts = set(re.findall(r"https?://(?:[^/@\s']*@)?([^/:\s']+)", answer.stdout))
    folders = set(re.findall(r"file://(/[^\s']+)", answer.stdout))
    for place in (hosts - {"localhost", "127.0.0.1"}) | folders:
        assert not search(re.escape(place))
