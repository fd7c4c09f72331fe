"""Check the prose of documents, docstrings, help texts and changelog, and the names in `src`.

python docs/_prose.py               print every finding; exit 1 when there is any
python docs/_prose.py --summary     print the number of findings of each file; exit 1 when any
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
from _prose_rules import (
    MAX_WORDS,
    MAX_WORDS_IN_RECORDS,
    Finding,
    check_bullets,
    check_name,
    check_prose,
)

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "tilewright"
RECORDS = ("docs/adr/", "docs/lab/", "docs/measurements/")


def main() -> int:
    """Print findings; return 1 when there are any."""
    parser = argparse.ArgumentParser(description="Check the prose of the repository.")
    parser.add_argument("--summary", action="store_true", help="print the findings per file")
    options = parser.parse_args()
    found = sorted(findings())
    if options.summary:
        for path, count in Counter(item.path for item in found).most_common():
            print(f"{count:5} {path}")
        print(f"{len(found):5} in all")
    else:
        for item in found:
            print(item)
    return 1 if found else 0


def findings() -> Iterator[Finding]:
    """Yield the findings of every page, docstring, help text and name."""
    for page in pages():
        path, text = page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8")
        limit = MAX_WORDS_IN_RECORDS if path.startswith(RECORDS) else MAX_WORDS
        yield from check_prose(path, text, max_words=limit)
        if path == "CHANGELOG.md":
            yield from check_bullets(path, text)
    for fragment in sorted((ROOT / "changelog.d").glob("*.md")):
        path, text = fragment.relative_to(ROOT).as_posix(), fragment.read_text(encoding="utf-8")
        kind = fragment.name.split(".")[-2].capitalize()
        yield from check_prose(path, text)
        yield from check_bullets(path, f"- {kind}: {' '.join(text.split())}\n")
    for file in sorted(SOURCE.rglob("*.py")):
        path = file.relative_to(ROOT).as_posix()
        tree = ast.parse(file.read_text(encoding="utf-8"), filename=path)
        for line, text in docstrings(tree):
            yield from check_prose(path, text, line=line)
        for line, kind, name in names(file, tree):
            yield from check_name(path, line, kind, name)
    yield from help_findings()


def pages() -> list[Path]:
    """Return the Markdown pages of `docs` and of the root."""
    return sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of modules, classes, functions, fields and constants."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        previous: ast.stmt | None = None
        for place, statement in enumerate(node.body):
            text = _text_of(statement)
            documented = isinstance(previous, ast.Assign | ast.AnnAssign)
            if text is not None and (place == 0 or documented):
                yield statement.lineno, text
            previous = statement


def _text_of(statement: ast.stmt) -> str | None:
    """Return the text of a statement that is a string, without its indentation."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return None
    value = statement.value.value
    return inspect.cleandoc(value) if isinstance(value, str) else None


def names(file: Path, tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield the names of a module, of its classes and of their fields, and isolation layers."""
    if not file.is_relative_to(SOURCE / "problems" / "bundled"):
        yield 1, "module", file.parent.name if file.name == "__init__.py" else file.stem
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        yield node.lineno, "class", node.name
        layers = node.name.endswith("IsolationLayer")
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                yield field.lineno, "field", field.target.id
            elif layers and isinstance(field, ast.Assign) and isinstance(field.value, ast.Constant):
                yield field.lineno, "layer", str(field.value.value)


def help_findings() -> Iterator[Finding]:
    """Yield the findings of the help texts of every option; a command's own is its docstring."""
    from tilewright.cli.main import cli

    for command in commands(cli, click.Context(cli, info_name="tilewright")):
        callback = inspect.unwrap(command.callback) if command.callback else None
        path = "src/tilewright/cli/main.py"
        if callback is not None:
            path = Path(callback.__code__.co_filename).resolve().relative_to(ROOT).as_posix()
        texts = [command.help or "", command.epilog or "", command.short_help or ""]
        texts += [str(p.help or "") for p in command.params if isinstance(p, click.Option)]
        for text in dict.fromkeys(texts):
            yield from check_prose(path, inspect.cleandoc(text).replace("\b", ""))


def commands(command: click.Command, context: click.Context) -> Iterator[click.Command]:
    """Yield a command and all below it."""
    yield command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, click.Context(below, info_name=name, parent=context))


if __name__ == "__main__":
    sys.exit(main())
