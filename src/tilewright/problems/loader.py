"""From a file to a `Problem`, by its syntax tree: the judge alone runs problem code."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tilewright.errors import ProblemError, reason_of, suggestion
from tilewright.languages.syntax import names_bound, parse_tree
from tilewright.records import Case, Problem, SourceFile
from tilewright.records.base import is_text
from tilewright.records.field_faults import first_fault

MAX_QUOTED = 200
"""Characters of an address that an error message quotes."""
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ .+-]{0,90}\.py")
"""Names of files that a record and every file system can hold."""
TEMPLATE = "`tilewright problems new NAME` writes one that works"
BUNDLED = Path(__file__).parent / "bundled"
_LITERALS = (
    *("CASES", "VARY", "GRADS", "DONATES", "PRECISION", "MODE", "ENTRY", "TOLERANCE"),
    "BUFFERS",
)


def bundled_names() -> list[str]:
    return sorted(path.parent.name for path in BUNDLED.glob("*/problem.py"))


def find_problem(address: str) -> Problem:
    """Return the problem at `address`: a file, also without `.py`, a folder, or a bundled name."""
    for path in (Path(address, "problem.py"), Path(address)):
        if os.path.isfile(path):
            return read_problem(path)
    name = address.removeprefix("bundled/")
    if name in bundled_names():
        return read_problem(BUNDLED / name / "problem.py", group="bundled/")
    if os.path.isfile(f"{address}.py"):
        return read_problem(Path(f"{address}.py"))
    near = suggestion(name, bundled_names())
    hint = f"; {near}" if near else ": neither a file nor a bundled problem;"
    shows = "`tilewright problems list` shows all"
    raise ProblemError(f"no problem {address[:MAX_QUOTED]!r}{hint} {shows}")


def read_problem(path: Path, *, group: str = "") -> Problem:
    """Read a problem file; its id is `group` and the name of the file or its folder."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(f"{path}: {reason_of(error)}") from error
    if not is_text(str(path)):
        raise ProblemError(f"{str(path)!r}: its name is not UTF-8; rename it")
    stem = path.parent.name if path.name == "problem.py" else path.stem
    return parse_problem(text, group + stem, stem, str(path), path.name)


def parse_problem(
    text: str, identity: str, stem: str, where: str, file: str | None = None
) -> Problem:
    """Return the problem in `text`; `stem` is the entry's name where the text gives none.

    `file` is the name of the file at `where`, if it holds nothing else; errors name its lines.
    """
    try:
        tree = parse_tree(text)
    except SyntaxError as error:
        raise ProblemError(_not_python(error, where, file)) from error
    except (ValueError, RecursionError, MemoryError) as error:
        # The last two: nested deeper than Python's parser can follow.
        raise ProblemError(f"{where}: not Python: {error or 'nested too deeply'}") from error
    defined = names_bound(tree)
    literals = _literals(tree, where)
    if {"Model", "get_inputs"} <= defined:
        kind, entry, cases = "module", "ModelNew", [Case(name="default")]
    elif {"reference", "inputs"} <= defined:
        kind, entry = "function", literals.get("ENTRY", stem)
        cases = _cases(literals.get("CASES"), _place_of("CASES", tree, where) if file else where)
    else:
        lacks = "neither `Model` and `get_inputs` nor `reference`, `inputs` and `CASES`"
        fault = f"it defines {lacks}" if text.strip() else "it is empty"
        raise ProblemError(f"{where}: not a problem: {fault}; {TEMPLATE}")
    vary = literals.get("VARY") or {}
    if not isinstance(vary, dict):
        raise ProblemError(f"{where}: VARY must be a dict of `sizes` and `contents`")
    try:
        found = Problem(
            id=identity,
            kind=kind,
            source=SourceFile(path=_shown(file), text=text),
            entry=entry,
            cases=tuple(cases),
            mode=literals.get("MODE", "train"),
            precision=literals.get("PRECISION", "tf32"),
            grads=tuple(literals.get("GRADS", ())),
            writable_inputs=tuple(literals.get("DONATES", ())),
            buffers=_buffers(literals.get("BUFFERS", ())),
            input_variations=None if vary.get("contents") is None else tuple(vary["contents"]),
            size_ranges={key: tuple(value) for key, value in vary.get("sizes", {}).items()},
            tolerance=literals.get("TOLERANCE"),
        )
    except (ValidationError, TypeError, AttributeError) as error:
        raise ProblemError(f"{where}: {_first(error)}") from error
    try:
        Problem.model_validate_json(found.to_json())
    except ValueError as error:
        # A lone surrogate, a number of thousands of digits: no record could hold it.
        raise ProblemError(f"{where}: a name or literal of it cannot be written as JSON") from error
    return found


def _buffers(value: Any) -> tuple[Any, ...]:  # noqa: ANN401 - a literal of the file
    """Return the names of a list; `True`: all buffers."""
    if isinstance(value, bool):
        return ("*",) if value else ()
    if isinstance(value, str):
        raise TypeError("BUFFERS must be True or a list of names")
    return tuple(value)


def _cases(value: Any, where: str) -> list[Case]:  # noqa: ANN401 - a literal of the file
    if not isinstance(value, list | tuple) or not value:
        raise ProblemError(
            f"{where}: CASES must be a list of dicts with at least one case, for example "
            "CASES = [{'n': 1024}]"
        )
    cases = []
    for number, item in enumerate(value):
        if not isinstance(item, dict):
            raise ProblemError(f"{where}: case {number} of CASES is not a dict")
        params = {key: item[key] for key in item if key != "name"}
        try:
            cases.append(Case(name=str(item.get("name", f"case {number + 1}")), params=params))
        except ValidationError as error:
            raise ProblemError(f"{where}: case {number} of CASES: {_first(error)}") from error
    names = [case.name for case in cases]
    if len(set(names)) != len(names):
        raise ProblemError(f"{where}: two of CASES have the same name")
    return cases


def _shown(file: str | None) -> str:
    """Return the name under which the judge loads a problem, and which its errors show."""
    return file if file and PLAIN_NAME.fullmatch(file) else "problem.py"


def _not_python(error: SyntaxError, where: str, file: str | None) -> str:
    if file is None or error.lineno is None:
        line = f" on line {error.lineno} of the code" if error.lineno else ""
        return f"{where}: not Python: {error.msg}{line}"
    return f"{where}:{error.lineno}: not Python: {error.msg}"


def _place_of(name: str, tree: ast.Module, where: str) -> str:
    """Return the file and the line that assigns a literal."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return f"{where}:{node.lineno}"
    return where


def _literals(tree: ast.Module, where: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in (each for each in tree.body if isinstance(each, ast.Assign)):
        name = getattr(node.targets[0], "id", "")
        if name in _LITERALS:
            try:
                found[name] = ast.literal_eval(node.value)
            except (ValueError, TypeError, RecursionError, MemoryError) as error:
                raise ProblemError(
                    f"{where}:{node.lineno}: {name} must be a literal: it is read without "
                    "running the file"
                ) from error
    return found


WRITTEN_AS = {
    "input_variations": "VARY.contents",
    "size_ranges": "VARY.sizes",
    "writable_inputs": "DONATES",
    "buffers": "BUFFERS",
}
"""Field of a `Problem`: its name in a problem file."""


def _first(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    return first_fault(error, WRITTEN_AS)
