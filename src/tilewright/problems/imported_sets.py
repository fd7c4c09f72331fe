"""Imported sets of problems, each a file of records under `home`, and addresses into them.

An address is `SET[/GROUP][/NUMBER][@REVISION]`: `kernelbench`, `kernelbench/level1`,
`kernelbench/level1/12`, `kernelbench/level1-12`. It may also be `spaces/NAME`, the problem of a
space of programs, or the path of a problem or of a folder of problems. A file of KernelBench's rows
works too: JSON lines, a JSON array or parquet. `nano`, `nano/train`, `nano/held_out` and
`nano/NAME` are problems of the family nano.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

from tilewright.errors import ProblemError, RecordError, suggestion, writing
from tilewright.families.nano.compositions import COMPOSITIONS, FAMILY
from tilewright.families.nano.problem_files import GROUPS, compositions_of, source_of
from tilewright.problems.loader import (
    BUNDLED,
    MAX_QUOTED,
    TEMPLATE,
    bundled_names,
    find_problem,
    parse_problem,
    read_problem,
)
from tilewright.problems.sets.base import Found, ProblemSet
from tilewright.records import Problem
from tilewright.records.parquet import LeftOut
from tilewright.records.whole_files import write_whole
from tilewright.registry import catalogue, load
from tilewright.spaces import SPACES

FOLDER = "problems"
MAX_REVISION_LENGTH = 200
"""Characters of a quoted revision; a file name has at most 255 with the rest of it."""
ROWS = (".jsonl", ".json", ".parquet")
SPACES_GROUP = "spaces"
"""Beginning of the address of a space's problem."""


def problem_set(name: str) -> ProblemSet:
    """Return the installed set of this name, or raise a ProblemError that lists them."""
    known = catalogue("problem_sets")
    if name not in known:
        hint = suggestion(name, known) or f"installed: {', '.join(known) or 'none'}"
        raise ProblemError(f"no problem set {name!r}; {hint}")
    found: ProblemSet = load("problem_sets", name)
    return found


def how_to_import(name: str) -> str:
    """Return the command that imports a set."""
    chosen = problem_set(name)
    command = f"tilewright problems import {name}"
    clone = chosen.repository.rpartition("/")[2]
    cloned = f"git clone {chosen.repository}   and then {command} --from {clone}"
    if chosen.hub is None:
        return f"it is not on the Hub; {cloned}"
    return f"{command}   fetches it from the Hub; without the Hub {cloned}"


def stored_path(home: Path, name: str, revision: str) -> Path:
    """Return the file that holds one revision of a set."""
    if not revision.isprintable():
        raise ProblemError(f"--revision {revision[:60]!r}: printable characters only")
    # `refs/pr/1` is a revision of the Hub's, and `../x` would lead out of the folder.
    quoted = quote(revision, safe="")
    if len(quoted) > MAX_REVISION_LENGTH:
        raise ProblemError(f"--revision {revision[:60]!r}...: longer than files are called")
    return home / FOLDER / f"{name}@{quoted}.jsonl"


def write_set(home: Path, name: str, revision: str, found: Found) -> Path:
    """Write the problems of a set; return the file.

    Raises:
        ConfigError: it cannot be written.
        ProblemError: the set has no problem.
    """
    path = stored_path(home, name, revision)
    if not found.problems:
        first = found.skipped[0] if found.skipped else "the source is empty"
        raise ProblemError(f"{name}: no problem could be read: {first}")
    with writing(path):
        write_whole(path, "".join(f"{item.to_json()}\n" for item in found.problems))
    return path


def imported(home: Path) -> list[tuple[str, str, int]]:
    """Return name, revision and number of problems of each set that was imported."""
    found = []
    for path in sorted((home / FOLDER).glob("*@*.jsonl")):
        name, _, revision = path.stem.partition("@")
        with open(path, encoding="utf-8") as file:
            found.append((name, unquote(revision), sum(1 for _ in file)))
    return found


def find_problems(address: str, home: Path, left_out: LeftOut = lambda _: None) -> list[Problem]:
    """Return the problems at an address: a path, a bundled one, or those of an imported set.

    `left_out` gets a text for each line, row or file at a path that is no problem. Where there is
    no problem at all, a ProblemError says what there is, or how to import it.
    """
    # `os.path` answers False for names that no file can have; `Path` would raise.
    path, is_file = Path(address), os.path.isfile(address)
    if path.suffix in ROWS and is_file:
        return _kept(path, problem_set("kernelbench").read(path, ""), left_out)
    if address == "bundled":
        return [find_problem(name) for name in bundled_names()]
    one = is_file or os.path.isfile(path / "problem.py")
    if one or address.removeprefix("bundled/") in bundled_names():
        return [find_problem(address)]
    base, _, revision = address.partition("@")
    name, _, rest = base.partition("/")
    if name == FAMILY and not os.path.isdir(path):
        return family_problems(rest)
    if name == SPACES_GROUP and not os.path.isdir(path):
        return space_problems(rest)
    if name not in catalogue("problem_sets"):
        if os.path.isdir(path):
            return _kept(path, _read_folder(path), left_out)
        return [find_problem(address)]
    problems = _read(_choose(home, name, revision))
    chosen = [item for item in problems if _matches(item.id, name, rest)]
    if not chosen:
        groups = sorted({re.sub(r"[-/]\d+$", "", item.id) for item in problems})
        raise ProblemError(f"no problem {address!r}; {name} has {', '.join(groups)}")
    return chosen


def space_problems(name: str = "") -> list[Problem]:
    """Return the problem of a space, or of all spaces.

    Raises:
        ProblemError: there is no such space.
    """
    chosen = [space for space in SPACES.values() if name in ("", space.name)]
    if not chosen:
        raise ProblemError(f"no space {name!r}; known: {', '.join(SPACES)}")
    return [read_problem(space.problem_path, group=f"{SPACES_GROUP}/") for space in chosen]


def family_problems(group: str = "") -> list[Problem]:
    """Return the problems of the family nano: all, those of `train` or `held_out`, or one by name.

    Raises:
        ProblemError: there is no such group or problem.
    """
    try:
        chosen = compositions_of(group)
    except KeyError:
        known = (*GROUPS, *(item.name for item in COMPOSITIONS))
        hint = suggestion(group, known) or f"known: {', '.join(known)}"
        raise ProblemError(f"no problem {group!r} in {FAMILY}; {hint}") from None
    return [
        parse_problem(source_of(item), item.id, item.name, item.id, f"{item.name}.py")
        for item in chosen
    ]


def known_problems(home: Path) -> Iterator[Problem]:
    """Yield the bundled problems, and those of every imported set in its newest revision."""
    yield from find_problems("bundled", home)
    for name in dict.fromkeys(name for name, _, _ in imported(home)):
        if name in catalogue("problem_sets"):
            yield from _read(_choose(home, name, ""))


def find_one(address: str, home: Path) -> Problem:
    """Return the one problem at an address, or raise a ProblemError."""
    found = find_problems(address, home)
    if len(found) == 1:
        return found[0]
    inside = f"{address.rstrip('/')}/" if Path(address).is_dir() else ""
    listed = ", ".join(f"{inside}{item.id}" for item in found[:3])
    more = ", ..." if len(found) > 3 else ""
    raise ProblemError(f"{address} holds {len(found)} problems: give one of {listed}{more}")


def find_named(address: str, home: Path) -> Problem:
    """Return a bundled problem or one of an imported set; an address is never a path here."""
    bundled = address.removeprefix("bundled/")
    if bundled in bundled_names():
        return read_problem(BUNDLED / bundled / "problem.py", group="bundled/")
    base, _, revision = address.partition("@")
    name, _, rest = base.partition("/")
    if name not in catalogue("problem_sets"):
        known = bundled_names()
        text = f"give its source text, the name of a bundled problem ({', '.join(known)})"
        hint = suggestion(bundled, known) or f"{text} or one of an imported set"
        raise ProblemError(f"no problem {address[:MAX_QUOTED]!r}; {hint}")
    chosen = [
        item for item in _read(_choose(home, name, revision)) if _matches(item.id, name, rest)
    ]
    if len(chosen) != 1:
        text = f"{len(chosen)} problems have the address {address[:MAX_QUOTED]!r}; give that of one"
        raise ProblemError(text)
    return chosen[0]


def _kept(path: Path, found: Found, left_out: LeftOut) -> list[Problem]:
    if not found.problems:
        raise ProblemError(found.skipped[0] if found.skipped else f"{path}: it is empty")
    for line in found.skipped:
        left_out(line)
    return found.problems


def _read_folder(folder: Path) -> Found:
    """Read each problem that is a file of a folder, or a folder in it with a `problem.py`."""
    found = Found()
    for item in sorted(folder.iterdir()):
        path = item / "problem.py" if item.is_dir() else item
        if path.suffix != ".py" or not path.is_file() or item.name.startswith((".", "_")):
            continue
        with found.skipping(str(path)):
            found.add(read_problem(path), str(path))
    if not found.problems and not found.skipped:
        raise ProblemError(
            f"{folder}: no problem in it, neither NAME.py nor NAME/problem.py; {TEMPLATE}"
        )
    return found


def _matches(identity: str, name: str, rest: str) -> bool:
    """Tell whether an id is at, or below, the rest of an address."""
    own = identity.removeprefix(f"{name}/").replace("-", "/")
    wanted = rest.replace("-", "/").strip("/")
    return not wanted or f"{own}/".startswith(f"{wanted}/")


def _choose(home: Path, name: str, revision: str) -> Path:
    kept = [item[1] for item in imported(home) if item[0] == name]
    if not kept:
        raise ProblemError(f"{name} is not imported yet: {how_to_import(name)}")
    if len(kept) == 1 and not revision:
        revision = kept[0]
    if revision in kept:
        return stored_path(home, name, revision)
    misplaced, _, rest = revision.partition("/")
    if misplaced in kept:
        raise ProblemError(f"the revision comes last: {name}/{rest}@{misplaced}")
    listed = ", ".join(f"{name}@{item}" for item in kept)
    raise ProblemError(f"which {name}? imported are: {listed}")


def _read(path: Path) -> list[Problem]:
    found = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                found.append(Problem.from_json(line))
            except RecordError as error:
                raise ProblemError(f"{path}:{number}: {error}; import the set again") from error
    return found
