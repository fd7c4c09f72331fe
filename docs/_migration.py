"""The page about changed names, from the alias tables of the code and the list of moved modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tilewright.cli.renamed_options import RENAMED_OPTIONS, REPLACED_OPTIONS
from tilewright.config import RENAMED_SETTINGS, RENAMED_TRAINING
from tilewright.records.version1 import VALUES

MOVES = Path(__file__).resolve().parent / "_module_moves.txt"
"""One line per module at a9ccb78: its old dotted path, then the path or paths where it is now."""
IN_REQUESTS = ("eval.rules.", "eval.timing.", "eval.limits.", "eval.require_")
"""Settings that are also fields of the `request` in a report."""
Table = Callable[[tuple[str, ...], Sequence[tuple[str, ...]]], str]
Section = tuple[str, str, tuple[str, ...], list[tuple[str, ...]]]


def page(table: Table) -> str:
    """Return the page: one table for each kind of name."""
    text = "# Migration\n\nNames that changed after commit a9ccb78.\n"
    text += "Old settings and options work for one release: each command prints one line that\n"
    text += "names the old and the new name. A configuration that gives both names of one setting\n"
    text += "is refused. Files that an earlier version wrote are read under the new names.\n\n"
    for title, about, head, rows in sections():
        text += f"## {title}\n\n{about}\n\n{table(head, rows)}"
    return text.rstrip() + "\n"


def sections() -> Iterator[Section]:
    """Yield each table: its title, one sentence, its head and its rows."""
    old_and_new = ("old", "new")
    training = {old: new for old, new in RENAMED_TRAINING.items() if "settings." not in old}
    yield (
        "Settings",
        "Paths in a settings file and after `--set`. The section `settings` of a training file "
        "holds the same paths.",
        old_and_new,
        quoted(RENAMED_SETTINGS),
    )
    yield (
        "Settings of training",
        "Paths in the file of `tilewright train` and after its `--set`.",
        old_and_new,
        quoted(training),
    )
    yield (
        "Options",
        "Options of the command line.",
        ("verb", *old_and_new),
        options(),
    )
    fields = {
        old.removeprefix("eval."): new.removeprefix("eval.")
        for old, new in RENAMED_SETTINGS.items()
        if old.startswith(IN_REQUESTS)
    }
    yield (
        "Fields of requests",
        "Fields of an evaluation request, and of the `request` in a report.",
        old_and_new,
        quoted(fields),
    )
    yield (
        "Values in records",
        "Names of checks, codes, labels, stages, isolation layers and reasons. A field of several "
        "records stands here once.",
        ("field", *old_and_new),
        values(),
    )
    yield (
        "Modules",
        "Modules of the package. Plug-ins and documents may quote the old paths.",
        ("at a9ccb78", "now"),
        moves(),
    )


def quoted(names: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return rows of code."""
    return [(f"`{old}`", f"`{new}`") for old, new in names.items()]


def options() -> list[tuple[str, ...]]:
    """Return a row for each option: its verb, its old name, its new name or its sub-command."""
    renamed = [
        (f"`{verb}`", f"`{old}`", f"`{new}`")
        for verb, names in RENAMED_OPTIONS.items()
        for old, new in names.items()
    ]
    replaced = [
        (f"`{verb}`", f"`{old}`", f"`{' '.join([verb, *words])}`")
        for verb, names in REPLACED_OPTIONS.items()
        for old, words in names.items()
    ]
    return [*renamed, *replaced]


def values() -> list[tuple[str, ...]]:
    """Return a row for each value of a field that has another name now."""
    found = {
        (f"`{key}`", f"`{old}`", f"`{new}`"): None
        for fields in VALUES.values()
        for key, names in fields.items()
        for old, new in names.items()
    }
    return list(found)


def moves() -> list[tuple[str, ...]]:
    """Return a row for each module that moved."""
    lines = [line.split() for line in MOVES.read_text(encoding="utf-8").splitlines()]
    return [(f"`{old}`", ", ".join(f"`{name}`" for name in new)) for old, *new in lines]
