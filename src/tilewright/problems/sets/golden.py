"""Gold files of KernelBench-X and TritonBench: an implementation, a line of 146 `#`, its tests.

The tests call the wrapper on inputs that they make. A problem made of such a file runs them with
the wrapper watched: each of its calls is a case, with the arguments of that call as inputs.
Operators that are given no arguments, or only keywords that cannot stand in order, are left out.
"""

from __future__ import annotations

import ast
import json
from pathlib import PurePath

from tilewright.errors import ProblemError
from tilewright.languages.syntax import parse_tree
from tilewright.records import Case, Problem, SourceFile

__all__ = ["SEPARATOR", "problem_of", "split_gold"]

SEPARATOR = "#" * 146
MOST_CALLS = 24
GLUE = '''

ENTRY = {entry!r}
CASES = {cases}
reference = {entry}


def _calls():
    """Return the positional arguments of each call that the tests make."""
    import copy
    import inspect

    found, own, signature = [], globals()[ENTRY], inspect.signature(reference)

    def watched(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        found.append(copy.deepcopy(bound.args))
        return own(*args, **kwargs)

    globals()[ENTRY] = watched
    try:
        {test}()
    finally:
        globals()[ENTRY] = own
    return found


def inputs(case, generator):
    return _calls()[case["call"]]
'''


def split_gold(text: str, where: str) -> tuple[str, str]:
    """Return the implementation and the tests of a gold file.

    Raises:
        ProblemError: the line between them is missing.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line.strip() == SEPARATOR:
            return "\n".join(lines[:number]).rstrip(), "\n".join(lines[number + 1 :]).strip()
    raise ProblemError(f"{where}: no line of {len(SEPARATOR)} '#' between gold and tests")


def problem_of(
    text: str,
    identity: str,
    where: str,
    *,
    category: str = "",
    thresholds: tuple[float, float, float] | None = None,
    printed: bool = False,
) -> Problem:
    """Return the problem of a gold file.

    Args:
        text: of the file.
        identity: of the problem.
        where: the file, for errors.
        category: of the operator.
        thresholds: of a task that asks for quantization.
        printed: whether the benchmark compares what the tests print, as TritonBench does. Where
            they print nothing any candidate passes that ends.

    Raises:
        ProblemError: it does not parse, has no test, or its tests call nothing that it defines.
    """
    gold, tests = split_gold(text, where)
    try:
        defined = {node.name for node in parse_tree(gold).body if isinstance(node, ast.FunctionDef)}
        tree = parse_tree(tests)
    except SyntaxError as error:
        raise ProblemError(f"{where}: not Python: {error}") from error
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    test = next((node for node in functions if node.name.startswith("test_")), None)
    if test is None:
        raise ProblemError(f"{where}: its tests define no function test_NAME")
    calls = [
        node.func.id
        for node in ast.walk(test)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    wrapper = next((name for name in calls if name in defined), None)
    if wrapper is None:
        raise ProblemError(f"{where}: {test.name} calls no function of the gold part")
    count = min(calls.count(wrapper), MOST_CALLS)
    cases = [{"name": f"call {number + 1}", "call": number} for number in range(count)]
    glue = GLUE.format(entry=wrapper, cases=json.dumps(cases), test=test.name)
    source = f"{gold}\n\n\n{_without_calls(tests, tree, test.name)}{glue}"
    return Problem(
        id=identity,
        kind="function",
        source=SourceFile(path="problem.py", text=source),
        entry=wrapper,
        cases=tuple(Case(name=str(c["name"]), params={"call": c["call"]}) for c in cases),
        contents=("nominal",),
        category=category,
        published="runs" if printed and not _prints(tree) else "by_dtype",
        thresholds=thresholds,
        # KernelBench-X asks for one of these, though some of its own golds have neither (K3).
        aliases=tuple(
            name for name in (PurePath(identity).name, "kernel_function") if name != wrapper
        ),
    )


def _prints(tests: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
        for node in ast.walk(tests)
    )


def _without_calls(tests: str, tree: ast.Module, test: str) -> str:
    """Return the tests without the lines that run them when the file is imported."""
    lines = tests.split("\n")
    for node in tree.body:
        runs = any(
            isinstance(item, ast.Call) and getattr(item.func, "id", "") == test
            for item in ast.walk(node)
        )
        if runs and not isinstance(node, ast.FunctionDef):
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return "\n".join(lines).rstrip() + "\n"
