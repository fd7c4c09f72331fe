"""Candidates and problems in the forms in which Python code gives them.

A string is an address or source text. A function is written out as source text, with what it uses.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilewright.errors import ConfigError
from tilewright.problems.candidates import read_candidate
from tilewright.problems.function_source import function_source, plain_function
from tilewright.problems.imported_sets import find_named, find_one
from tilewright.problems.loader import parse_problem
from tilewright.records import Candidate, Problem, SourceFile, digest_text

_STATEMENT = re.compile(r"@|#include\b|\w+\s*=[^=]|(def|class|import|from|async|extern|with|if)\s")
"""Beginnings of a line that is source text, if no file has its name."""
TEXT_ENTRY = "work"
"""Entry point of a function problem whose source text names none."""
INPUTS = """

def inputs(case, generator):
    return {name}({arguments})


CASES = [{{"name": "default"}}]
ENTRY = "{entry}"
"""


def is_source(text: str) -> bool:
    """Tell whether a string is source text; any other is an address or a path.

    Text has several lines, or none, or is one statement. A file of that name takes precedence.
    """
    if "\n" in text or not text.strip():
        return True
    return _is_statement(text) and not os.path.exists(text)


def is_address(given: object) -> bool:
    """Tell whether a problem is an address, which a server may resolve: no text and no path."""
    if not isinstance(given, str) or is_source(given):
        return False
    return not (os.path.exists(given) or os.path.exists(f"{given}.py"))


def _is_statement(text: str) -> bool:
    return _STATEMENT.match(text.lstrip()) is not None


def candidate_files(given: object, entry: str = "") -> tuple[SourceFile, ...]:
    """Return the files of a candidate: source text, a path, a function, or a record.

    `entry` is the problem's entry point, where it is known.
    """
    if isinstance(given, Candidate):
        return given.files
    if isinstance(given, str) and is_source(given):
        return (_text_file("candidate.py", given),)
    if isinstance(given, str | Path):
        return read_candidate(str(given), entry)
    if plain_function(given) is not None:
        return (_text_file("candidate.py", function_source("candidate", given)),)
    wanted = "source text, a path, a function or a Candidate"
    raise ConfigError(f"candidate: expected {wanted}, got {type(given).__name__}")


def problem_of(given: object, home: Path) -> Problem:
    """Return a problem: an address, a path, source text, a record, or two functions.

    Raises:
        ConfigError: the argument has another type.
        ProblemError: there is no such problem, or its source text is none.
    """
    match given:
        case Problem():
            return given
        case str() if is_source(given):
            return _parsed(given, TEXT_ENTRY)
        case str() | Path():
            return find_one(str(given), home)
        case (reference, inputs):
            functions = plain_function(reference), plain_function(inputs)
            if functions[0] is not None and functions[1] is not None:
                return _from_functions(functions[0], functions[1])
        case _:
            pass
    if plain_function(given) is not None:
        text = "a reference alone has no inputs; give (reference, make_inputs)"
        raise ConfigError(f"problem: {text}")
    wanted = "an address, a path, source text, a Problem or (reference, make_inputs)"
    raise ConfigError(f"problem: expected {wanted}, got {type(given).__name__}")


def problem_of_client(given: str, home: Path) -> Problem:
    """Return a problem that a client of a server gives: source text or an address.

    It reads no path of this machine. Raises ProblemError as `problem_of` does.
    """
    if "\n" in given or _is_statement(given):
        return _parsed(given, TEXT_ENTRY)
    return find_named(given, home)


def _from_functions(reference: Callable[..., Any], inputs: Callable[..., Any]) -> Problem:
    """Return the problem of a reference and of a function that returns its inputs.

    `inputs` takes nothing, `generator`, or `case, generator`.
    """
    count = len(inspect.signature(inputs).parameters)
    if count > 2:
        text = f"`{inputs.__name__}` takes {count} arguments"
        raise ConfigError(f"inputs: {text}; it may take none, generator, or case and generator")
    arguments = ("", "generator", "case, generator")[count]
    text = function_source("problem", reference, inputs)
    if reference.__name__ != "reference":
        text += f"\n\nreference = {reference.__name__}\n"
    made = INPUTS.format(name="_inputs", arguments=arguments, entry=reference.__name__)
    return _parsed(f"{text}\n\n_inputs = {inputs.__name__}\n{made}", reference.__name__)


def _parsed(text: str, entry: str) -> Problem:
    text = _whole(text)
    identity = f"given/{entry}-{digest_text(text)[:8]}"
    return parse_problem(text, identity, entry, "the problem's source text")


def _text_file(path: str, text: str) -> SourceFile:
    return SourceFile(path=path, text=_whole(text))


def _whole(text: str) -> str:
    """Return text without half a surrogate pair, as models write them: it cannot be sent on."""
    return text.encode(errors="replace").decode()
