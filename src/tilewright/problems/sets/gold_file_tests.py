"""The tests of a gold file, by their syntax tree: the statements that run them, and their calls."""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.errors import ProblemError
from tilewright.languages.syntax import names_stored

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
SAME_LENGTH = ("enumerate", "reversed", "sorted", "list", "tuple", "set")
READING = ("items", "keys", "values", "copy", "index", "count", "get")
"""Methods that leave a collection as long as it is."""


def find_tests(tree: ast.Module) -> list[ast.FunctionDef]:
    """Return the functions `test_NAME` that the file runs; the first one where it runs none."""
    found = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    run = {name for node in tree.body if not isinstance(node, DEFINITIONS) for name in _read(node)}
    # Another test, or an unknown tool, calls a test with arguments.
    alone = [node for node in found if len(node.args.args) <= len(node.args.defaults)]
    return [node for node in alone if node.name in run] or found[:1]


@dataclass(frozen=True)
class Operator:
    """Something in the gold part that tests can call: a function, or an `autograd.Function`."""

    arguments: ast.arguments | None
    """Those of the function; `None`: it takes all by position, as `apply` does."""
    is_class: bool = False
    """Whether the tests call `NAME.apply`, not `NAME`."""


def operators_of(gold: ast.Module) -> dict[str, Operator]:
    """Return what the tests of a gold file can call by name: functions, classes and other names.

    A class counts by its `apply`. `name = Class.apply` and `name = function` count too.
    """
    found: dict[str, Operator] = {}
    for node in gold.body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = Operator(node.args)
        elif isinstance(node, ast.ClassDef) and _derives_from(node, "Function"):
            found[node.name] = Operator(None, is_class=True)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            known = found.get(name_of(node.value))
            applied = isinstance(node.value, ast.Attribute)
            if known is not None and applied == known.is_class:
                found[node.targets[0].id] = Operator(known.arguments)
    return found


def _derives_from(node: ast.ClassDef, base: str) -> bool:
    return any(ast.unparse(each).rpartition(".")[2] == base for each in node.bases)


def name_of(node: ast.expr) -> str:
    """Return the name that an expression reads: `f` of `f`, and `C` of `C.apply`; else nothing."""
    if isinstance(node, ast.Attribute) and node.attr == "apply":
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def called_name(node: ast.AST) -> str:
    """Return the name that a call uses, as `name_of` does; nothing for other nodes."""
    return name_of(node.func) if isinstance(node, ast.Call) else ""


def reads_arguments(tests: Sequence[ast.FunctionDef], operator: str) -> bool:
    """Tell whether tests use an argument of a call after the call, and not only in further calls.

    A test that shows what the operator has written into its arguments does so.
    """
    for test in tests:
        calls = [
            node
            for node in ast.walk(test)
            if isinstance(node, ast.Call) and called_name(node) == operator
        ]
        given = {id(name) for call in calls for name in ast.walk(call)}
        passed: dict[str, int] = {}
        for call in calls:
            for name in _read(call):
                passed.setdefault(name, call.lineno)
        for node in ast.walk(test):
            if not isinstance(node, ast.Name) or id(node) in given:
                continue
            if isinstance(node.ctx, ast.Load) and passed.get(node.id, math.inf) < node.lineno:
                return True
    return False


def without_runs(text: str, tree: ast.Module, tests: Sequence[str], *, itself: str = "") -> str:
    """Return the text without statements that run a test, or use what such a statement made.

    Imports from the module `itself` go too: what they name stands in the same file.
    """
    lines, gone, known = text.split("\n"), set(tests), 0
    while known < len(gone):
        # A function may stand before what it uses.
        known = len(gone)
        for node in tree.body:
            bound = set(names_stored(node))
            if isinstance(node, DEFINITIONS):
                if not gone.isdisjoint(_read(node) - bound):
                    gone.add(node.name)
            elif not gone.isdisjoint(_read(node)):
                gone |= bound
    for node in tree.body:
        # A definition may stay, as long as nobody calls it.
        own = isinstance(node, ast.ImportFrom) and itself and node.module == itself
        if own or (not isinstance(node, DEFINITIONS) and not gone.isdisjoint(_read(node))):
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return "\n".join(lines).rstrip() + "\n"


def _read(node: ast.AST) -> set[str]:
    names = (item for item in ast.walk(node) if isinstance(item, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Load)}


@dataclass(frozen=True)
class Form:
    """The form of a call's arguments, which any function accepts that accepts the tests' calls."""

    positional: int | None
    """How many by position; `None`: all that are given."""
    keywords: tuple[str, ...]
    """Those that are passed by name, after them. Others are left at their defaults."""


def form_of(tree: ast.Module, operator: Operator, name: str) -> Form:
    """Return one form that fits each call of an operator in the tests.

    Raises:
        ProblemError: an operator takes `**names`, and its calls use different ones.
    """
    arguments = operator.arguments
    if arguments is None:
        return Form(None, ())
    called = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    calls = [call for call in called if name_of(call.func) == name]
    uses = sum(getattr(node, "id", "") == name for node in ast.walk(tree))
    by_place = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args)]
    names = {keyword.arg for call in calls for keyword in call.keywords}
    places = max((len(call.args) for call in calls), default=0)
    if uses > len(calls) or None in names:
        # The source does not show the arguments: assume all that are possible.
        names = {*by_place, *(arg.arg for arg in arguments.kwonlyargs)}
        places = max(places, len(by_place) - len(arguments.defaults))
    if any(isinstance(item, ast.Starred) for call in calls for item in call.args):
        places = len(by_place)
    places = max(places, len(arguments.posonlyargs))
    rest = [*by_place[places:], *(arg.arg for arg in arguments.kwonlyargs)]
    if arguments.kwarg is not None:
        rest += _further_names(calls, {*by_place, *rest}, name)
    keywords = tuple(name for name in rest if name in names)
    return Form(None if arguments.vararg else places, keywords)


def _further_names(calls: Sequence[ast.Call], known: set[str], operator: str) -> list[str]:
    """Return the keywords beyond the parameters that are known, which each call must have."""
    sets = {tuple(sorted({str(k.arg) for k in call.keywords} - known)) for call in calls}
    if len(sets) > 1 or any("None" in names for names in sets):
        raise ProblemError(
            f"{operator} takes any keywords, and its calls have different ones; candidates are "
            "called in one form"
        )
    return [name for names in sets for name in names]


def count_calls(tree: ast.Module, tests: Sequence[ast.FunctionDef], function: str) -> float:
    """Return an upper limit of the calls of a function in tests; infinity if there is none.

    Both branches of a condition count. A loop counts once for each item of its iterable, if the
    file shows their number.
    """
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    counting = _Counting(function, functions, _literals(tree))
    return sum(counting.body(node.body, (node.name,)) for node in tests)


def _literals(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the values of names that are bound once and never changed."""
    bound, changed = Counter(names_stored(tree)), set[str]()
    values: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            changed.add(node.arg)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr not in READING:
                changed.add(node.value.id)
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                changed.add(node.value.id)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
    return {
        name: value for name, value in values.items() if bound[name] == 1 and name not in changed
    }


def _product(*numbers: float) -> float:
    return math.prod(numbers) if all(numbers) else 0


@dataclass(frozen=True)
class _Counting:
    """Counts calls of `function`, at most; `functions` and `literals` are what the file defines."""

    function: str
    functions: dict[str, ast.FunctionDef]
    literals: dict[str, ast.expr]

    def body(self, nodes: Sequence[ast.AST], inside: tuple[str, ...]) -> float:
        """Return the calls in statements, which stand inside functions of these names."""
        return sum(self.node(node, inside) for node in nodes)

    def node(self, node: ast.AST, inside: tuple[str, ...]) -> float:
        """Return the calls in one statement or expression."""
        if isinstance(node, DEFINITIONS):
            return 0
        if isinstance(node, ast.Name):
            return self.called(node.id, inside) and math.inf
        if isinstance(node, ast.Call) and (name := name_of(node.func)):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            return self.called(name, inside) + self.body(given, inside)
        if isinstance(node, ast.For):
            around = self.body([node.iter, *node.orelse], inside)
            return around + _product(self.body(node.body, inside), self.length(node.iter))
        within = self.body(list(ast.iter_child_nodes(node)), inside)
        if isinstance(node, ast.While | ast.Lambda):
            return within and math.inf
        if isinstance(node, COMPREHENSIONS):
            return _product(within, self.rounds(node.generators))
        return within

    def called(self, name: str, inside: tuple[str, ...]) -> float:
        if name == self.function:
            return 1
        if name not in self.functions:
            return 0
        if name in inside:
            return math.inf
        return self.body(self.functions[name].body, (*inside, name))

    def _without(self, name: str) -> _Counting:
        """Return a count that does not look a name up again, since it may refer to itself."""
        others = {other: value for other, value in self.literals.items() if other != name}
        return replace(self, literals=others)

    def rounds(self, loops: Sequence[ast.comprehension]) -> float:
        return _product(*(self.length(loop.iter) for loop in loops))

    def length(self, node: ast.expr) -> float:
        """Return how many items there are to go over."""
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            starred = any(isinstance(item, ast.Starred) for item in node.elts)
            return math.inf if starred else len(node.elts)
        if isinstance(node, ast.Dict):
            return math.inf if None in node.keys else len(node.keys)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return len(node.value)
        if isinstance(node, ast.Name) and node.id in self.literals:
            return self._without(node.id).length(self.literals[node.id])
        if isinstance(node, COMPREHENSIONS):
            return self.rounds(node.generators)
        return self.length_of_call(node) if isinstance(node, ast.Call) else math.inf

    def length_of_call(self, node: ast.Call) -> float:
        name = ast.unparse(node.func).rpartition(".")[2]
        if isinstance(node.func, ast.Attribute) and name in ("items", "keys", "values"):
            return self.length(node.func.value)
        if name in SAME_LENGTH and node.args:
            return self.length(node.args[0])
        if name == "zip" and node.args:
            return min(self.length(item) for item in node.args)
        if name == "product" and not node.keywords:
            return _product(*(self.length(item) for item in node.args))
        if name == "range" and node.args:
            known = [number for each in node.args if (number := self.number(each)) is not None]
            return len(range(*known)) if len(known) == len(node.args) else math.inf
        return math.inf

    def number(self, node: ast.expr) -> int | None:
        if isinstance(node, ast.Name) and node.id in self.literals:
            return self._without(node.id).number(self.literals[node.id])
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "len" and node.args:
            length = self.length(node.args[0])
            return None if math.isinf(length) else int(length)
        try:
            value = ast.literal_eval(node)
        except (ValueError, TypeError):
            return None
        return value if isinstance(value, int) else None
