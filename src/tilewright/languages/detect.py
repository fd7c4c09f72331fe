"""The language of a candidate, and the name of its entry point, from its source alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tilewright.errors import ConfigError, suggestion
from tilewright.languages.base import Language
from tilewright.languages.built_in import BUILT_IN
from tilewright.languages.cpp_lexer import defines, exported_names
from tilewright.languages.syntax import (
    Module,
    Unparseable,
    calls,
    is_python,
    names_bound,
    names_defined,
    parse_module,
    parse_modules,
    star_imports,
)
from tilewright.records import SourceFile

_MODULE_ENTRY = "ModelNew"
MAX_LISTED = 12
"""Names that the message about a missing entry point lists."""
_FILLS_NAMESPACE = frozenset({"exec", "globals", "locals", "setattr", "vars"})


@dataclass(frozen=True)
class MissingEntry:
    """A candidate without its entry point; `message` names what it defines instead."""

    path: str
    message: str
    defined: tuple[str, ...]


def detect(
    files: Sequence[SourceFile],
    forced: str | None = None,
    languages: Sequence[Language] = BUILT_IN,
) -> str | Unparseable:
    """Return the name of the language: `forced`, or the first of `languages` that matches.

    The rules are those of docs/reference/formats.md, applied to syntax trees. A `.py` file that is
    no Python gives `Unparseable`, even for a forced language. Raises ConfigError if none fits.
    """
    if not files:
        raise ConfigError("a candidate needs at least one file")
    chosen = None if forced is None else _named(forced, files[0], languages)
    for file in filter(is_python, files):
        parsed = parse_module(file.path, file.text)
        if isinstance(parsed, Unparseable):
            return parsed
    chosen = chosen or next((each.name for each in languages if each.matches(files)), None)
    if chosen is not None:
        return chosen
    known = ", ".join(dict.fromkeys(suffix for each in languages for suffix in each.suffixes))
    raise ConfigError(f"{files[0].path}: no language has such files; known endings: {known}")


def find_entry(
    files: Sequence[SourceFile],
    problem_entry: str,
    forced: str | None = None,
    aliases: Sequence[str] = (),
) -> str | Unparseable | MissingEntry:
    """Return the name that the candidate exports, found in its first file.

    With `forced` (the argument `entry`) no other name counts. Else the first defined name of
    `ModelNew`, `problem_entry` and `aliases` counts. A Python file may fill its namespace when it
    runs (`from x import *`, `exec`, `globals()`). Then this assumes `forced` or `problem_entry`,
    and a missing one is an error when the runner loads the file.
    """
    if not files:
        raise ConfigError("a candidate needs at least one file")
    first = files[0]
    names = [forced] if forced is not None else [_MODULE_ENTRY, problem_entry, *aliases]
    if is_python(first):
        module = parse_module(first.path, first.text)
        if isinstance(module, Unparseable):
            return module
        bound = _bound_with_siblings(module, files)
        found = next((name for name in names if name in bound), None)
        if found is None and _is_open(module, files):
            found = forced or problem_entry
        defined = [*names_defined(module.tree), *sorted(bound - names_bound(module.tree))]
        seen = [name for name in defined if not name.startswith("_")]
    else:
        sources = [file.text for file in files if file.encoding == "utf-8"]
        found = next((n for n in names if any(defines(text, n) for text in sources)), None)
        seen = list(exported_names("\n".join(sources)))
    if found is None:
        message = _missing_text(names, seen, forced or problem_entry)
        return MissingEntry(first.path, message, tuple(seen))
    return found


def _missing_text(names: Sequence[str], seen: Sequence[str], expected: str) -> str:
    """Return what a candidate lacks, what it defines, and what to do."""
    wanted = [f"`{name}`" for name in dict.fromkeys(names)]
    lacks = f"it does not define {wanted[0]}"
    if len(wanted) > 1:
        lacks = f"it defines neither {', '.join(wanted[:-1])} nor {wanted[-1]}"
    if not seen:
        return f"{lacks}; it defines nothing"
    listed = ", ".join(f"`{name}`" for name in seen[:MAX_LISTED])
    more = ", ..." if len(seen) > MAX_LISTED else ""
    renamed = "it" if len(seen) == 1 else "one of them"
    return f"{lacks}; it defines {listed}{more}. Rename {renamed} to `{expected}`"


def exports(file: SourceFile, name: str) -> bool:
    """Tell whether one file alone defines `name`; `False` for Python that does not parse."""
    if not is_python(file):
        return file.encoding == "utf-8" and defines(file.text, name)
    return any(name in names_bound(module.tree) for module in parse_modules([file]))


def rivals(files: Sequence[SourceFile], entry: str) -> tuple[str, ...]:
    """Return the paths of files that are candidates of their own, if there are several.

    Each defines `ModelNew` or `entry` itself, and no file names another of them, as an import or a
    build does.
    """
    names, found = {_MODULE_ENTRY, entry}, list[SourceFile]()
    for file in files:
        if is_python(file):
            defined = [name for made in parse_modules([file]) for name in names_defined(made.tree)]
        else:
            defined = [name for name in names if exports(file, name)]
        if names.intersection(defined):
            found.append(file)
    if any(_names(file, other) for file in files for other in found if other is not file):
        return ()
    return tuple(file.path for file in found) if len(found) > 1 else ()


def _names(file: SourceFile, other: SourceFile) -> bool:
    """Tell whether a file imports another one, or contains its name."""
    path = PurePosixPath(other.path)
    stem, name = re.escape(path.stem), re.escape(path.name)
    return re.search(rf"\b(?:import|from)\b[^\n]*\b{stem}\b|\b{name}\b", file.text) is not None


def main_first(files: Sequence[SourceFile], entry: str) -> tuple[SourceFile, ...]:
    """Return the files with the one to load in front; the others keep their order.

    It is the first that defines `ModelNew` or `entry`. Python comes first: it binds the C++ files.
    """

    def rank(file: SourceFile) -> tuple[bool, bool]:
        return (not (exports(file, _MODULE_ENTRY) or exports(file, entry)), not is_python(file))

    main = min(files, key=rank, default=None)
    return tuple(sorted(files, key=lambda file: file is not main))


def _named(forced: str, first: SourceFile, languages: Sequence[Language]) -> str:
    known = {language.name: language.suffixes for language in languages}
    if forced not in known:
        hint = suggestion(forced, known) or f"known: {', '.join(known)}"
        raise ConfigError(f"no language is called {forced!r}; {hint}")
    if not first.path.endswith(known[forced]):
        endings = ", ".join(known[forced])
        raise ConfigError(f"{first.path}: a {forced} candidate starts with one of {endings}")
    return forced


def _bound_with_siblings(module: Module, files: Sequence[SourceFile]) -> frozenset[str]:
    """Return the names that `module` binds, those of star-imported sibling files included."""
    bound = set(names_bound(module.tree))
    waiting, seen = list(star_imports(module)), set()
    while waiting:
        name = waiting.pop()
        sibling = _sibling(name, files)
        if name in seen or sibling is None:
            continue
        seen.add(name)
        for parsed in parse_modules([sibling]):
            bound |= {each for each in names_bound(parsed.tree) if not each.startswith("_")}
            waiting.extend(star_imports(parsed))
    return frozenset(bound)


def _sibling(module: str, files: Sequence[SourceFile]) -> SourceFile | None:
    path = PurePosixPath(module.replace(".", "/"))
    names = {str(path.with_suffix(".py")), str(path / "__init__.py")} if module else set()
    return next((file for file in files if file.path in names), None)


def _is_open(module: Module, files: Sequence[SourceFile]) -> bool:
    if "__getattr__" in names_bound(module.tree):
        return True
    if any(_sibling(name, files) is None for name in star_imports(module)):
        return True
    return any(getattr(call.func, "id", "") in _FILLS_NAMESPACE for call in calls(module))
