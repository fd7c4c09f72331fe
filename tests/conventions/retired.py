"""Where retired terms still occur: a scan of `src`, `tests`, `docs` and every `--help`.

A row of retired_terms.yaml has terms, each with a scope:

text        the words, anywhere, also over the end of a line
regex       a pattern, anywhere
code        the words in quotes or backticks, anywhere
module      a path below src/tilewright without `.py`; also its dotted name
name        an identifier of Python in `src` or `tests`; `MOST_*` has any ending
identifier  an identifier of Python in `evaluator`, `runner` or `wire`

`python -m tests.conventions.retired` removes `pending` from the rows that have become clean.
"""

from __future__ import annotations

import functools
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import yaml

from tests.conventions.tree import ROOT, SOURCE, name_of, python_files, texts
from tilewright.cli.main import cli

TABLE = ROOT / "tests" / "conventions" / "retired_terms.yaml"
PLACES = tuple(ROOT / place for place in ("src", "tests", "docs"))
PLAIN_ENGLISH_IS_RETIRED_IN = tuple(SOURCE / name for name in ("evaluator", "runner", "wire"))


@dataclass(frozen=True)
class Row:
    """A row of the rename table."""

    row: int
    kind: str
    old: str
    new: str
    enforced: bool
    terms: tuple[tuple[str, str], ...] = ()
    reason: str = ""
    pending: bool = False


@functools.cache
def table() -> tuple[Row, ...]:
    """Return every row of the table."""
    rows = yaml.safe_load(TABLE.read_text(encoding="utf-8"))["rows"]
    return tuple(
        Row(**{**row, "terms": tuple((t["scope"], t["term"]) for t in row.get("terms", []))})
        for row in rows
    )


@functools.cache
def allowed() -> dict[str, str]:
    """Return the paths that may hold retired terms, with the reason of each."""
    rows = yaml.safe_load(TABLE.read_text(encoding="utf-8"))["allowed"]
    return {str(row["path"]): str(row["reason"]) for row in rows}


def is_allowed(path: Path) -> bool:
    """Tell whether a file is a table of old names, or was written with them."""
    return any(
        name_of(path) == place or name_of(path).startswith(f"{place}/") for place in allowed()
    )


@functools.cache
def prose() -> dict[str, str]:
    """Return the text of every scanned file, with single spaces, and of every help page."""
    found = {
        name_of(path): " ".join(path.read_text(encoding="utf-8", errors="replace").split())
        for path in texts()
        if path.is_relative_to(ROOT)
        and any(path.is_relative_to(place) for place in PLACES)
        and not is_allowed(path)
    }
    return found | dict(help_pages(cli, click.Context(cli, info_name="tilewright")))


def help_pages(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the help of a command and of all below it."""
    yield f"{context.command_path} --help", " ".join(command.get_help(context).split())
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from help_pages(below, click.Context(below, info_name=name, parent=context))


@functools.cache
def identifiers(*, plain: bool) -> dict[str, str]:
    """Return a place of each identifier of `src` and `tests`; `plain`: of the three packages."""
    found: dict[str, str] = {}
    for path in python_files(under=ROOT):
        below = PLAIN_ENGLISH_IS_RETIRED_IN if plain else PLACES[:2]
        if is_allowed(path) or not any(path.is_relative_to(place) for place in below):
            continue
        source = path.read_text(encoding="utf-8")
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.NAME:
                found.setdefault(token.string, f"{name_of(path)}:{token.start[0]}")
    return found


@functools.cache
def joined() -> str:
    """Return all scanned text, to ask quickly whether a term is there at all."""
    return "\n".join(prose().values())


def occurrences(scope: str, term: str) -> list[str]:
    """Return the places of a term."""
    if scope in ("name", "identifier"):
        names = identifiers(plain=scope == "identifier")
        if term.endswith("*"):
            return [place for name, place in names.items() if name.startswith(term[:-1])]
        return [names[term]] if term in names else []
    if scope == "module":
        if (SOURCE / f"{term}.py").exists():
            return [f"src/tilewright/{term}.py"]
        dotted = re.escape("tilewright." + term.replace("/", "."))
        return search(rf"(?<![\w/]){re.escape(term)}\.py\b|{dotted}(?![\w.]*/)\b", term)
    if scope == "regex":
        return search(term, "")
    if scope == "code":
        return search("|".join(re.escape(f"{q}{term}{q}") for q in "\"'`"), term)
    edge = "-" if term.startswith("--") else ""
    return search(rf"(?<![\w{edge}]){re.escape(term)}(?![\w{edge}])", term)


def search(pattern: str, literal: str) -> list[str]:
    """Return the files in which a pattern is found; `literal` is a part of each match."""
    forms = {literal, literal.replace("/", ".")}
    if not any(form in joined() for form in forms):
        return []
    compiled = re.compile(pattern)
    return [
        path
        for path, text in prose().items()
        if any(form in text for form in forms) and compiled.search(text)
    ]


def drop_pending() -> None:
    """Remove `pending` from the rows of which nothing occurs any more; add it to none."""
    text = TABLE.read_text(encoding="utf-8")
    for row in table():
        if row.pending and not any(occurrences(scope, term) for scope, term in row.terms):
            before, after = text.split(f"  - row: {row.row}\n", 1)
            after = after.replace("    pending: true\n", "", 1)
            text = f"{before}  - row: {row.row}\n{after}"
    TABLE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    drop_pending()
