"""Tasks of GPU MODE's leaderboards, read from the user's clone: `task.yml` and its files.

`generate_input` makes the inputs under secret seeds, and `ref_kernel` is the reference. Only the
judge runs them. Nothing of the clone is executed while it is read.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tilewright.errors import ProblemError, reason_of
from tilewright.languages.syntax import parse_tree
from tilewright.problems.sets.base import Found
from tilewright.problems.sets.gpumode_check import REFERENCE, tolerances_of
from tilewright.records import Case, Problem, SourceFile

TASK = "task.yml"
SUBMISSION = "@SUBMISSION@"
ENTRY = "custom_kernel"
GENERATOR = "generate_input"
CHECKED_BY = "reference.py"
NOT_GIVEN = ("eval.py", CHECKED_BY)
"""Files of a task that a candidate does not get: the harness, and the reference."""
MAX_FILE_BYTES = 1_000_000
"""Most bytes of one file of a task."""
GROUPS = ("tests", "benchmarks")
"""Lists of sizes in a `task.yml`, which become cases."""
GLUE = '''"""A task of GPU MODE: its files as modules, and their functions under our names."""

import json
import linecache
import sys
import types

import torch

ENTRY = "custom_kernel"
FILES = {files}
SIZES = json.loads({sizes!r})


def _module(name, text):
    path = f"task_files/{{name}}.py"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    module = sys.modules[name] = types.ModuleType(name)
    module.__file__ = path
    exec(compile(text, path, "exec"), vars(module))
    return module


_task = [_module(name, text) for name, text in FILES.items()][-1]


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def inputs(case, generator):
    size = {{name: _tuples(value) for name, value in SIZES[case["place"]].items()}}
    if "seed" in size:
        place = generator.device
        size["seed"] = int(torch.randint(2**31 - 1, (), generator=generator, device=place))
    return (_task.generate_input(**size),)


def reference(data):
    return _task.ref_kernel(data)
'''


@dataclass(frozen=True)
class GpuModeTask:
    """One folder of a task, as its `task.yml` describes it."""

    folder: Path
    description: str
    files: Mapping[str, str]
    """Texts of its Python files by module name."""
    sizes: Mapping[str, tuple[dict[str, Any], ...]]
    """By the name of the list in `task.yml`."""
    ranking_by: str
    timeouts_s: Mapping[str, float]


class GpuMode:
    """The set, with the competitions as groups."""

    name = "gpumode"
    about = "tasks of GPU MODE's leaderboards, under their own licence"
    repository = "https://github.com/gpu-mode/reference-kernels"
    hub = None

    def read(self, source: Path, revision: str) -> Found:
        """Read a clone, or a folder of tasks."""
        found, licence = Found(), licence_of(source)
        for path in sorted(source.rglob(TASK)):
            place = path.parent.relative_to(source).as_posix().removeprefix("problems/")
            with found.skipping(str(path)):
                problem = problem_of(
                    read_task(path.parent, source), f"{self.name}/{place}", licence
                )
                found.add(problem.model_copy(update={"revision": revision}), str(path))
        if not found.problems and not found.skipped:
            raise ProblemError(f"{source}: no task of GPU MODE here: no {TASK}")
        return found


def licence_of(root: Path) -> str:
    """Return the first lines of a clone's licence, which name it."""
    try:
        with open(root / "LICENSE", encoding="utf-8") as file:
            lines = [line.strip() for line in file if line.strip()]
    except (OSError, UnicodeDecodeError):
        return f"{GpuMode.repository}: its licence was not found in the clone"
    return f"{GpuMode.repository}: {', '.join(lines[:2])}"


def read_task(folder: Path, root: Path) -> GpuModeTask:
    """Read the `task.yml` of a folder and the files that it names, which must lie below `root`.

    Raises:
        ProblemError: it cannot be read, or names a file that is refused.
    """
    path = folder / TASK
    try:
        tree = yaml.safe_load(_text(path, root, path))
    except (yaml.YAMLError, RecursionError) as error:
        raise ProblemError(f"{path}: not YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(tree, dict):
        raise ProblemError(f"{path}: not a mapping")
    if tree.get("lang", "py") != "py":
        raise ProblemError(f"{path}: lang is {tree['lang']!r}; only tasks in Python are read")
    if tree.get("multi_gpu"):
        raise ProblemError(f"{path}: the task needs several GPUs, and a candidate gets one")
    return GpuModeTask(
        folder,
        description=str(tree.get("description") or ""),
        files=dict(_files(path, tree, root)),
        sizes={name: tuple(_sizes(path, name, tree.get(name))) for name in GROUPS},
        ranking_by=str(tree.get("ranking_by") or "last"),
        timeouts_s={
            name: float(value)
            for name in ("test_timeout", "benchmark_timeout", "ranked_timeout")
            if isinstance(value := tree.get(name), int | float)
        },
    )


def _files(path: Path, tree: dict[str, Any], root: Path) -> Iterator[tuple[str, str]]:
    listed = tree.get("files")
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise ProblemError(f"{path}: files is not a list of mappings")
    for item in listed:
        name, source = item.get("name"), item.get("source")
        if not isinstance(name, str) or not isinstance(source, str):
            raise ProblemError(f"{path}: a file wants `name` and `source`")
        if Path(name).name != name:
            raise ProblemError(f"{path}: the file name {name!r} leads out of the task's folder")
        if source != SUBMISSION and name.endswith(".py") and name != "eval.py":
            yield name.removesuffix(".py"), _text(path.parent / source, root, path)


def _text(path: Path, root: Path, by: Path) -> str:
    """Return the text of a file; a link, and a file that is not below `root`, is refused."""
    whole = path.resolve()
    if not whole.is_relative_to(root.resolve()):
        raise ProblemError(f"{by}: names {path}, a file outside of {root}")
    if any(part.is_symlink() for part in _parts(path, root)):
        raise ProblemError(f"{by}: names {path}, a link, which is not followed")
    if whole.is_file() and whole.stat().st_size > MAX_FILE_BYTES:
        raise ProblemError(f"{by}: names {path}, which is larger than {MAX_FILE_BYTES} bytes")
    try:
        return whole.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(f"{by}: {path} cannot be read: {reason_of(error)}") from error


def _parts(path: Path, root: Path) -> Iterator[Path]:
    """Yield a path and the folders above it, as far as they are below a root."""
    yield path
    for parent in path.parents:
        if parent in (root, Path()):
            return
        yield parent


def _sizes(path: Path, name: str, listed: object) -> Iterator[dict[str, Any]]:
    if not isinstance(listed, list):
        raise ProblemError(f"{path}: {name} is not a list of sizes")
    for item in listed:
        if not isinstance(item, dict) or not all(isinstance(key, str) for key in item):
            raise ProblemError(f"{path}: {name} holds {str(item)[:60]!r}, which is no mapping")
        yield item


def problem_of(task: GpuModeTask, identity: str, licence: str) -> Problem:
    """Return the problem of a task.

    Raises:
        ProblemError: the task lacks a file or a function, or its check does more than compare.
    """
    where = str(task.folder)
    if "reference" not in task.files:
        raise ProblemError(f"{where}: its {TASK} names no {CHECKED_BY}")
    trees = {name: _parsed(text, f"{where}/{name}.py") for name, text in task.files.items()}
    defined = {item.name for item in trees["reference"].body if isinstance(item, ast.FunctionDef)}
    for name in (GENERATOR, REFERENCE):
        if name not in defined:
            raise ProblemError(f"{where}/{CHECKED_BY}: defines no {name}")
    rule = tolerances_of(trees["reference"], trees.get("utils"), f"{where}/{CHECKED_BY}")
    files = {name: task.files[name] for name in _ordered(trees)}
    sizes = [size for name in GROUPS for size in task.sizes[name]]
    names = [f"{name[:-1]} {n + 1}" for name in GROUPS for n in range(len(task.sizes[name]))]
    if not sizes:
        raise ProblemError(f"{where}/{TASK}: no sizes in tests and benchmarks")
    return Problem(
        id=identity,
        kind="function",
        source=SourceFile(
            path="problem.py", text=GLUE.format(files=_literal(files), sizes=_json(sizes, where))
        ),
        entry=ENTRY,
        cases=tuple(
            Case(name=name, params={"place": place, **_shown(size)})
            for place, (name, size) in enumerate(zip(names, sizes, strict=True))
        ),
        category=identity.split("/")[1],
        description=task.description,
        # The harness hands each submission a copy of the data, in which it may write; many tasks
        # hand it the memory for its output too.
        writable_inputs=("data",),
        official_comparison="elementwise",
        tolerances=rule,
        licence=licence,
        candidate_files=tuple(
            SourceFile(path=f"{name}.py", text=text)
            for name, text in files.items()
            if f"{name}.py" not in NOT_GIVEN
        ),
    )


def _parsed(text: str, where: str) -> ast.Module:
    try:
        return parse_tree(text)
    except SyntaxError as error:
        raise ProblemError(f"{where}: not Python: {error.msg} on line {error.lineno}") from error


def _ordered(trees: Mapping[str, ast.Module]) -> list[str]:
    """Return the modules so that each comes after those that it imports; the reference is last."""
    imports = {name: imported(tree) & set(trees) - {name} for name, tree in trees.items()}
    left, found = [name for name in trees if name != "reference"], list[str]()
    while left:
        ready = [name for name in left if imports[name] <= set(found)] or left[:1]
        found += ready
        left = [name for name in left if name not in ready]
    return [*found, "reference"]


def imported(tree: ast.Module) -> set[str]:
    """Return the modules that a file imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {item.name.partition(".")[0] for item in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def _literal(files: Mapping[str, str]) -> str:
    lines = "".join(f"    {name!r}: {text!r},\n" for name, text in files.items())
    return f"{{\n{lines}}}"


def _json(sizes: list[dict[str, Any]], where: str) -> str:
    try:
        return json.dumps(sizes)
    except (TypeError, ValueError) as error:
        raise ProblemError(f"{where}/{TASK}: a size is no number, text or list: {error}") from error


def _shown(size: Mapping[str, Any]) -> dict[str, str | int | float | bool]:
    """Return a size for readers; the seed is not used, and lists are shown as text."""
    return {
        name: value if isinstance(value, str | int | float | bool) else str(value)
        for name, value in size.items()
        if name not in ("seed", "place")
    }


SET = GpuMode()
