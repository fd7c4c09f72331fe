"""The files of the repository, as the tests of conventions see them."""

from __future__ import annotations

import ast
import fnmatch
import functools
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "tilewright"

# Kept as their authors would write them: they are judged, not imported.
_EXHIBITS = (
    "src/tilewright/problems/bundled/*/*",
    "src/tilewright/spaces/problems/*",
    "tests/corpus/*/*",
    "tests/attacks/attacks/*",
    "tests/attacks/honest/*",
    "tests/attacks/problems/*",
    "benchmarks/gpu/candidates/*",
)
_SKIPPED = {"build", "dist", "runs", "out", "__pycache__"}
_BINARY = {".png", ".ico", ".gz", ".npy", ".so", ".pyc"}


@functools.cache
def tracked() -> tuple[Path, ...]:
    """Return the files that git tracks or would track; without git, all but hidden ones."""
    if shutil.which("git") and (ROOT / ".git").exists():
        command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"]
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            names = answer.stdout.split("\0")
            return tuple(ROOT / name for name in sorted(names) if name and (ROOT / name).is_file())
    found = []
    for folder, below, names in os.walk(ROOT):
        below[:] = [n for n in below if n not in _SKIPPED and (n == ".ci" or n[0] != ".")]
        found += [Path(folder) / name for name in names]
    return tuple(sorted(found))


def texts() -> list[Path]:
    """Return every tracked file of text."""
    return [path for path in tracked() if path.suffix not in _BINARY]


def python_files(*, under: Path = ROOT) -> list[Path]:
    """Return our own Python files below `under`, without the exhibits."""
    return [
        path
        for path in tracked()
        if path.suffix == ".py" and path.is_relative_to(under) and not is_exhibit(path)
    ]


def is_exhibit(path: Path) -> bool:
    """Tell whether a file is a problem, a candidate or a corpus file."""
    return any(fnmatch.fnmatchcase(name_of(path), pattern) for pattern in _EXHIBITS)


def name_of(path: Path) -> str:
    """Return the path that a message shows."""
    return path.relative_to(ROOT).as_posix()


@functools.cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imports(path: Path) -> set[str]:
    """Return the absolute names of the modules that a file imports, at any depth."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno}: write absolute imports"
            found.add(node.module or "")
    return found
