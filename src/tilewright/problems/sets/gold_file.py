"""Gold files of KernelBench-X and TritonBench: an implementation, a line of 146 `#`, its tests.

The tests call the wrapper on inputs that they make. The problem runs them and records each call:
its arguments are the inputs of one case. The judge alone runs the tests, so the importer counts
the calls by the text.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import PurePath

from tilewright.errors import ProblemError
from tilewright.languages.syntax import parse_tree
from tilewright.problems.sets.gold_file_tests import (
    Operator,
    called_name,
    count_calls,
    find_tests,
    form_of,
    operators_of,
    reads_arguments,
    without_runs,
)
from tilewright.problems.sets.gold_kernels import launching
from tilewright.records import Case, Problem, SourceFile
from tilewright.wire.names import MOVED

SEPARATOR = "#" * 146
MAX_CALLS = 24
"""Calls of a gold file's tests that become cases; the first ones, if there are more."""
BESIDE = """def _beside(name, text):
    import sys
    import types

    sys.modules[name] = types.ModuleType(name)
    exec(text, vars(sys.modules[name]))


"""
GLUE = '''

ENTRY = {entry!r}
CASES = {cases}
BY_PLACE, BY_NAME = {places!r}, {names!r}
reference = {entry}{member}


class _Enough(BaseException):
    """The wanted call was made."""


def _copied(value):
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, (list, tuple)):
        return type(value)(map(_copied, value))
    if isinstance(value, dict):
        return {{key: _copied(item) for key, item in value.items()}}
    return value


def _calls(number):
    """Return the arguments of the first calls of the tests that the operator does not refuse.

    The tests end after this number of calls.
    """
    import inspect
    import types

    found, own, signature = [], globals()[ENTRY], inspect.signature(reference)

    def watched(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        # Before the call, which may overwrite them.
        by_name = [bound.arguments[name] for name in BY_NAME]
        given = _copied([*bound.args[:BY_PLACE], *by_name])
        globals()[ENTRY] = own
        try:
            answer = reference(*args, **kwargs)
        finally:
            globals()[ENTRY] = stand_in
        found.append(given)
        if len(found) == number:
            raise _Enough
        return answer

    stand_in = types.SimpleNamespace(apply=watched) if {member!r} else watched
    globals()[ENTRY] = stand_in
    try:
        {runs}
    except _Enough:
        pass
    finally:
        globals()[ENTRY] = own
    return found


def inputs(case, generator):
    found = _calls(case["call"] + 1)
    if not found:
        raise ValueError("the tests make no call that " + ENTRY + " answers")
    # Of calls that a condition skips, or that are refused, others stand in the place.
    return found[case["call"] % len(found)]
'''


def split_gold(text: str, where: str) -> tuple[str, str]:
    """Return the implementation and the tests of a gold file."""
    line = rf"^[^\S\n]*{SEPARATOR}[^\S\n]*$"
    parts = re.split(line, text, maxsplit=1, flags=re.MULTILINE)
    if len(parts) == 1:
        raise ProblemError(f"{where}: no line of {len(SEPARATOR)} '#' between gold and tests")
    return parts[0].rstrip(), parts[1].strip()


def problem_of(
    text: str,
    identity: str,
    where: str,
    *,
    category: str = "",
    description: str = "",
    thresholds: tuple[float, float, float] | None = None,
    printed: bool = False,
    companions: tuple[SourceFile, ...] = (),
) -> Problem:
    """Return the problem of a gold file, or raise a ProblemError that begins with `where`.

    A task that asks for quantization has `thresholds`. The tests may import `companions`. With
    `printed` the benchmark compares printed text; where the tests print nothing, anything passes.
    """
    gold, tests = split_gold(text, where)
    implementation, tree = _parsed(gold, where), _parsed(tests, where)
    defined = operators_of(implementation)
    run = find_tests(tree)
    if not run:
        raise ProblemError(f"{where}: its tests define no function test_NAME")
    wrapper = _wrapper(run, defined, launching(implementation), where)
    try:
        form = form_of(tree, defined[wrapper], wrapper)
    except ProblemError as error:
        raise ProblemError(f"{where}: {error}") from error
    count = max(int(min(count_calls(tree, run, wrapper), MAX_CALLS)), 1)
    names = [test.name for test in run]
    tests = without_runs(tests, tree, names, itself=PurePath(where).stem)
    tests = _imported(tree, companions) + tests
    glue = GLUE.format(
        entry=wrapper,
        member=".apply" if defined[wrapper].is_class else "",
        cases=json.dumps([{"name": f"call {n + 1}", "call": n} for n in range(count)]),
        places=form.positional,
        names=form.keywords,
        runs="\n        ".join(f"{test}()" for test in names),
    )
    source = f"{gold}\n\n\n{tests}{glue}"
    return Problem(
        id=identity,
        kind="function",
        source=SourceFile(path="problem.py", text=source),
        entry=wrapper,
        cases=tuple(Case(name=f"call {n + 1}", params={"call": n}) for n in range(count)),
        keyword_args=form.keywords,
        input_variations=("nominal", MOVED),
        compares_overwritten=reads_arguments(run, wrapper),
        category=category,
        description=description,
        official_comparison="runs" if printed and not _prints(tree) else "by_dtype",
        thresholds=thresholds,
        # KernelBench-X asks for one of these, though some of its own golds have neither (K3).
        aliases=tuple(
            name for name in (PurePath(identity).name, "kernel_function") if name != wrapper
        ),
    )


def _parsed(text: str, where: str) -> ast.Module:
    try:
        return parse_tree(text)
    except SyntaxError as error:
        raise ProblemError(f"{where}: not Python: {error.msg} on line {error.lineno}") from error


def _imported(tests: ast.Module, companions: tuple[SourceFile, ...]) -> str:
    """Return source that makes the companions importable that the tests import."""
    names = {
        name
        for node in ast.walk(tests)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (getattr(node, "module", None), *(alias.name for alias in node.names))
    }
    wanted = [file for file in companions if PurePath(file.path).stem in names]
    made = "".join(f"_beside({PurePath(f.path).stem!r}, {f.text!r})\n\n\n" for f in wanted)
    return f"{BESIDE}{made}" if wanted else ""


def _wrapper(
    run: list[ast.FunctionDef], defined: dict[str, Operator], launching: set[str], where: str
) -> str:
    """Return the first operator that the tests call; one without a kernel only prepares others."""
    called = [called_name(node) for test in run for node in ast.walk(test)]
    found = [name for name in called if name in defined]
    if not found:
        raise ProblemError(f"{where}: {run[0].name} calls no function of the gold part")
    return next((name for name in found if name in launching), found[0])


def _prints(tests: ast.Module) -> bool:
    called = (node.func for node in ast.walk(tests) if isinstance(node, ast.Call))
    return any(getattr(function, "id", "") == "print" for function in called)
