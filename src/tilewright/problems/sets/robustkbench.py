"""Tasks of robust-kbench, read from the user's clone: `func_forward.py` and `config_forward.json`.

A task has a function `forward_fn`, a `Model` that passes its inputs and parameters to it, and
configurations. A problem is the function: its inputs are the arguments that `Model` passes, and
each configuration is a case. Nothing of the clone is executed while it is read.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tilewright.errors import ProblemError, reason_of
from tilewright.languages.syntax import parse_tree
from tilewright.problems.sets.base import Found
from tilewright.records import Case, Problem, SourceFile

TASK, CONFIGS, BACKWARD = "func_forward.py", "config_forward.json", "func_backward.py"
ENTRY, MODEL, GENERATOR = "forward_fn", "Model", "get_inputs"
TOLERANCE = 1e-5
"""Absolute and relative tolerance of the benchmark's own script."""
MAX_FILE_BYTES = 1_000_000
"""Most bytes of one file of a task."""
LICENCE = "https://github.com/SakanaAI/robust-kbench: Apache License 2.0"
_KERNELBENCH = re.compile(r"kernelbench/level_(\d+)/task_(\d+)$")
GLUE = """{about!r}

import json
import types

import torch

ENTRY = "forward_fn"
CONFIGS = json.loads({configs!r})
SOURCE = {source!r}

_task = types.ModuleType("func_forward")
exec(compile(SOURCE, "func_forward.py", "exec"), vars(_task))


class _Passed(Exception):
    pass


def _capture(*arguments):
    raise _Passed(arguments)


def inputs(case, generator):
    config, place = CONFIGS[case["place"]], generator.device
    seed = int(torch.randint(2**31 - 1, (), generator=generator, device=place))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = _task.Model(**config["init"])
        given = _task.get_inputs(**config["input"])
    try:
        model(*given, fn=_capture)
    except _Passed as passed:
        (arguments,) = passed.args
    return tuple(
        item.detach().to(place) if isinstance(item, torch.Tensor) else item for item in arguments
    )


def reference(*arguments):
    return _task.forward_fn(*arguments)
"""


class RobustKBench:
    """The set; tasks of KernelBench are `level1-1` and so on."""

    name = "robustkbench"
    about = "functions with several configurations, from robust-kbench (forward passes)"
    repository = "https://github.com/SakanaAI/robust-kbench"
    hub = None

    def read(self, source: Path, revision: str) -> Found:
        """Read a clone, or a folder of tasks."""
        found = Found()
        for path in sorted(source.rglob(TASK)):
            place = path.parent.relative_to(source).as_posix().removeprefix("tasks/")
            with found.skipping(str(path)):
                problem = _problem(path.parent, source, f"{self.name}/{_short(place)}")
                found.add(problem.model_copy(update={"revision": revision}), str(path))
            if (path.parent / BACKWARD).is_file():
                found.skipped.append(f"{path.parent / BACKWARD}: backward passes are not read")
        if not found.problems and not found.skipped:
            raise ProblemError(f"{source}: no task of robust-kbench here: no {TASK}")
        return found


def _short(place: str) -> str:
    task = _KERNELBENCH.search(place)
    return f"level{task[1]}-{task[2]}" if task else place


def _problem(folder: Path, root: Path, identity: str) -> Problem:
    """Return the problem of a task.

    Raises:
        ProblemError: it cannot be read, or its `Model` does more than pass arguments on.
    """
    text = _text(folder / TASK, root)
    description = _checked(text, str(folder / TASK))
    configs = list(_configs(folder / CONFIGS, root))
    return Problem(
        id=identity,
        kind="function",
        source=SourceFile(
            path="problem.py",
            text=GLUE.format(about=description, source=text, configs=json.dumps(configs)),
        ),
        entry=ENTRY,
        # The name of the function in the benchmark's CUDA files.
        aliases=("forward",),
        cases=tuple(
            Case(name=f"configuration {place + 1}", params={"place": place, **_shown(config)})
            for place, config in enumerate(configs)
        ),
        category="kernelbench" if "level" in identity else "robust-kbench",
        description=description,
        tolerance=TOLERANCE,
        licence=LICENCE,
    )


def _text(path: Path, root: Path) -> str:
    """Return the text of a file; a link out of the clone is refused."""
    whole = path.resolve()
    if not whole.is_relative_to(root.resolve()) or path.is_symlink():
        raise ProblemError(f"{path}: a link, which is not followed")
    try:
        if whole.stat().st_size > MAX_FILE_BYTES:
            raise ProblemError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
        return whole.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(f"{path}: cannot be read: {reason_of(error)}") from error


def _checked(text: str, where: str) -> str:
    """Return the description of a task whose `Model` only passes arguments to `fn`.

    Raises:
        ProblemError: it is no Python, lacks a definition, or computes something itself.
    """
    try:
        tree = parse_tree(text)
    except SyntaxError as error:
        raise ProblemError(f"{where}: not Python: {error.msg} on line {error.lineno}") from error
    defined = {
        item.name: item for item in tree.body if isinstance(item, ast.FunctionDef | ast.ClassDef)
    }
    for name in (ENTRY, MODEL, GENERATOR):
        if name not in defined:
            raise ProblemError(f"{where}: defines no {name}")
    forward = next(
        (
            item
            for item in defined[MODEL].body
            if isinstance(item, ast.FunctionDef) and item.name == "forward"
        ),
        None,
    )
    if forward is None or not _passes_on(forward):
        raise ProblemError(
            f"{where}: the forward of its {MODEL} does more than return fn(arguments), so the "
            "function alone is not the task"
        )
    about = (ast.get_docstring(defined[ENTRY]) or "").strip().partition("\n\n")[0]
    return about or f"A task of robust-kbench: {ENTRY}"


def _passes_on(forward: ast.FunctionDef) -> bool:
    """Tell whether a method only returns one call of `fn`, with arguments by place."""
    calls = [
        node
        for node in ast.walk(forward)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "fn"
    ]
    last = forward.body[-1]
    return (
        len(calls) == 1
        and isinstance(last, ast.Return)
        and last.value is calls[0]
        and not calls[0].keywords
    )


def _configs(path: Path, root: Path) -> Iterator[dict[str, dict[str, Any]]]:
    """Yield the different configurations, the single one first."""
    try:
        tree = json.loads(_text(path, root))
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"{path}: no JSON: {error}") from error
    seen = set()
    for kind in ("single", "multi"):
        names = [f"{kind}_{name}_configs" for name in ("init", "input", "shared")]
        lists = [tree.get(name) if isinstance(tree, dict) else None for name in names]
        for name, found in zip(names, lists, strict=True):
            if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
                raise ProblemError(f"{path}: {name} is not a list of objects")
        for init, given, shared in itertools.product(*filter(None, lists)):
            config = {"init": {**init, **shared}, "input": {**given, **shared}}
            # `multi` without any setting means that there are no further configurations.
            if (key := json.dumps(config, sort_keys=True)) in seen or (
                kind == "multi" and not any(config.values())
            ):
                continue
            seen.add(key)
            yield config


def _shown(config: dict[str, dict[str, Any]]) -> dict[str, str | int | float | bool]:
    """Return the settings of a configuration for readers; lists are shown as text."""
    return {
        name: value if isinstance(value, str | int | float | bool) else str(value)
        for name, value in {**config["init"], **config["input"]}.items()
        if name != "place"
    }


SET = RobustKBench()
