"""Imported sets of problems, each a file of records under `home`, and addresses into them.

`SET[/GROUP][/NUMBER][@REVISION]`: `kernelbench`, `kernelbench/level1`, `kernelbench/level1/12`,
`kernelbench/level1-12`; or the path of a problem, or of a file of KernelBench's rows.
"""

from __future__ import annotations

import re
from pathlib import Path

from tilewright.errors import ProblemError, RecordError
from tilewright.problems.reader import bundled_names, find_problem
from tilewright.problems.sets.base import Found, ProblemSet
from tilewright.records import Problem
from tilewright.registry import catalogue, load

__all__ = ["find_one", "find_problems", "imported", "problem_set", "stored_path", "write_set"]

FOLDER = "problems"


def problem_set(name: str) -> ProblemSet:
    """Return the installed set of this name.

    Raises:
        ProblemError: none is called so.
    """
    known = catalogue("problem_sets")
    if name not in known:
        raise ProblemError(f"no problem set {name!r}; installed: {', '.join(known) or 'none'}")
    found: ProblemSet = load("problem_sets", name)
    return found


def stored_path(home: Path, name: str, revision: str) -> Path:
    """Return where a set of a revision is kept."""
    return home / FOLDER / f"{name}@{revision}.jsonl"


def write_set(home: Path, name: str, revision: str, found: Found) -> Path:
    """Keep what was read of a set; return the file.

    Raises:
        ProblemError: there is nothing to keep.
    """
    if not found.problems:
        first = found.skipped[0] if found.skipped else "the source is empty"
        raise ProblemError(f"{name}: no problem could be read: {first}")
    path = stored_path(home, name, revision)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text("".join(f"{item.to_json()}\n" for item in found.problems), encoding="utf-8")
    fresh.replace(path)
    return path


def imported(home: Path) -> list[tuple[str, str, int]]:
    """Return name, revision and number of problems of each set that was imported."""
    found = []
    for path in sorted((home / FOLDER).glob("*@*.jsonl")):
        name, _, revision = path.stem.partition("@")
        with open(path, encoding="utf-8") as file:
            found.append((name, revision, sum(1 for _ in file)))
    return found


def find_problems(address: str, home: Path) -> list[Problem]:
    """Return the problems at an address: a path, a bundled one, or those of an imported set.

    Raises:
        ProblemError: there is none; the message says what there is, or how to import it.
    """
    path = Path(address)
    if path.suffix in (".jsonl", ".json") and path.is_file():
        found = problem_set("kernelbench").read(path, "")
        if not found.problems:
            raise ProblemError(found.skipped[0] if found.skipped else f"{path}: it is empty")
        return found.problems
    if address == "bundled":
        return [find_problem(name) for name in bundled_names()]
    if path.exists() or address.removeprefix("bundled/") in bundled_names():
        return [find_problem(address)]
    base, _, revision = address.partition("@")
    name, _, rest = base.partition("/")
    if name not in catalogue("problem_sets"):
        return [find_problem(address)]
    problems = _read(_choose(home, name, revision))
    chosen = [item for item in problems if _matches(item.id, name, rest)]
    if not chosen:
        groups = sorted({re.sub(r"[-/]\d+$", "", item.id) for item in problems})
        raise ProblemError(f"no problem {address!r}; {name} has {', '.join(groups)}")
    return chosen


def find_one(address: str, home: Path) -> Problem:
    """Return the one problem at an address.

    Raises:
        ProblemError: there is none, or there are several.
    """
    found = find_problems(address, home)
    if len(found) > 1:
        listed = ", ".join(item.id for item in found[:3])
        raise ProblemError(f"{address} holds {len(found)} problems: give one of {listed}, ...")
    return found[0]


def _matches(identity: str, name: str, rest: str) -> bool:
    """Tell whether an id is at, or below, the rest of an address."""
    own = identity.removeprefix(f"{name}/").replace("-", "/")
    asked = rest.replace("-", "/").strip("/")
    return not asked or own == asked or own.startswith(f"{asked}/")


def _choose(home: Path, name: str, revision: str) -> Path:
    kept = [item[1] for item in imported(home) if item[0] == name]
    if revision in kept:
        return stored_path(home, name, revision)
    if len(kept) == 1 and not revision:
        return stored_path(home, name, kept[0])
    if kept:
        listed = ", ".join(f"{name}@{item}" for item in kept)
        raise ProblemError(f"which {name}? imported are: {listed}")
    raise ProblemError(
        f"{name} is not imported yet: tilewright problems import {name}   fetches it from the "
        f"Hub; without network add --from PATH, its clone or a file of its rows"
    )


def _read(path: Path) -> list[Problem]:
    found = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                found.append(Problem.from_json(line))
            except RecordError as error:
                raise ProblemError(f"{path}:{number}: {error}; import the set again") from error
    return found
