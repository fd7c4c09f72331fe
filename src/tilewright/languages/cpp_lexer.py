"""Reading C, C++ and CUDA source as tokens: comments and strings out, names and lines kept."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from tilewright.records import SourceFile

# An alternative without its end runs to the end of the text, which keeps the scan linear also for
# hostile text.
_LEXEME = re.compile(
    r"""
      (?P<comment> //[^\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<string> (?:u8|[uUL])?R"(?P<tag>[^()\s\\"]{0,16})\(.*?(?:\)(?P=tag)"|\Z)
                | "(?:\\.|[^"\\\n])*"?
                | '(?:\\.|[^'\\\n])' )
    """,
    re.VERBOSE | re.DOTALL,
)
_EXPORT = re.compile(r'extern\s*"C"\s[^;{}()"]{0,200}?([A-Za-z_]\w*)\s*\(')
_MARKS = re.compile(
    r'^[ \t]*#[ \t]*include\b|\bextern\s*"C"|__global__|\b(?:at|torch)::', re.MULTILINE
)
_QUOTED_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


def without_comments(text: str) -> str:
    """Return the source with spliced lines joined and comments blank, line numbers kept."""
    return _LEXEME.sub(
        lambda match: _blank(match) if match["comment"] is not None else match[0], _spliced(text)
    )


def code_only(text: str) -> str:
    """Return the source without comments and strings, `"C"` excepted, line numbers kept."""
    return _LEXEME.sub(
        lambda match: match[0] if match[0] == '"C"' else _blank(match), _spliced(text)
    )


def looks_native(text: str) -> bool:
    """Tell whether text has a mark of C++ or CUDA: an include, `extern "C"`, a kernel, torch::."""
    return _MARKS.search(text) is not None


def defines(text: str, name: str) -> bool:
    """Tell whether the source seems to export `name` with C linkage: `extern "C"` and `name(`."""
    code = code_only(text)
    return '"C"' in code and re.search(rf"\b{re.escape(name)}\s*\(", code) is not None


def exported_names(text: str) -> tuple[str, ...]:
    """Return the functions declared as `extern "C" type name(`, in order, for messages."""
    return tuple(dict.fromkeys(_EXPORT.findall(code_only(text))))


def compiled_units(files: Sequence[SourceFile], suffixes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths to compile: sources that no other file includes."""
    included = {path for file in files for path in _includes(file)}
    paths = (file.path for file in files if file.path.endswith(suffixes))
    return tuple(path for path in paths if path not in included)


def _includes(file: SourceFile) -> Iterator[str]:
    folder = posixpath.dirname(file.path)
    for name in _QUOTED_INCLUDE.findall(without_comments(file.text)):
        path = posixpath.normpath(posixpath.join(folder, name))
        if path != posixpath.normpath(file.path):
            yield path


def _blank(match: re.Match[str]) -> str:
    return " " + "\n" * match[0].count("\n")


def _spliced(text: str) -> str:
    """Join lines that end in a backslash; the line breaks move behind the joined line."""
    lines: list[str] = []
    held: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.endswith("\\"):
            held.append(line[:-1])
            continue
        lines.append("".join([*held, line]) + "\n" * len(held))
        held.clear()
    return "\n".join([*lines, *held])
