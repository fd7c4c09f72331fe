"""The source text of functions that live in a process, with the names that they use.

Modules are imported again, functions and classes of the same file are written out, and constants
are written as literals. An error names a value that no text can express.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from tilewright.errors import ConfigError
from tilewright.languages.syntax import parse_tree

MAX_WRAPPERS = 8
"""Objects around a kernel: a launcher, an autotuner, heuristics."""
MAX_LITERAL = 10_000
"""Characters of a constant that is written out."""


def plain_function(value: object) -> FunctionType | None:
    """Return a function without its decorators, also that of a Triton kernel; `None` for others."""
    for _ in range(MAX_WRAPPERS):
        if isinstance(value, FunctionType):
            unwrapped = inspect.unwrap(value)
            return unwrapped if isinstance(unwrapped, FunctionType) else None
        # A kernel is inside its launcher, and that is inside an autotuner.
        value = None if isinstance(value, type) else getattr(value, "fn", None)
    return None


def function_source(argument: str, *functions: Any) -> str:  # noqa: ANN401 - functions or kernels
    """Return a module's text that defines `functions` under their names.

    `argument` is the name of the caller's argument, for messages.

    Raises:
        ConfigError: a function has no source text, or uses a value that cannot be written out.
    """
    writer = _Writer(argument)
    for function in functions:
        writer.add_definition(_named(argument, function), function)
    return writer.text()


def _named(argument: str, function: Any) -> str:  # noqa: ANN401
    plain = plain_function(function)
    name = function.__name__ if plain is None else plain.__name__
    if name == "<lambda>":
        raise ConfigError(f"{argument}: a lambda has no source text; define it with def")
    return str(name)


class _Writer:
    """Collects the parts of a module. Lifetime: one call of `function_source`."""

    def __init__(self, argument: str) -> None:
        self._argument = argument
        self._imports: dict[str, str] = {}
        self._constants: dict[str, str] = {}
        self._definitions: dict[str, str] = {}

    def text(self) -> str:
        """Return the module's text: imports, constants, then definitions, each after its uses."""
        parts = ["\n".join(self._imports.values()), "\n".join(self._constants.values())]
        return "\n\n\n".join(part for part in (*parts, *self._definitions.values()) if part) + "\n"

    def add_definition(self, name: str, value: Any) -> None:  # noqa: ANN401 - function or class
        """Add a function or class with all that it uses."""
        if name in self._definitions:
            return
        plain = plain_function(value) or value
        try:
            text = textwrap.dedent(inspect.getsource(plain))
            tree = parse_tree(text)
        except (OSError, TypeError, SyntaxError) as error:
            message = f"the source text of `{name}` cannot be read; give a file or text instead"
            raise ConfigError(f"{self._argument}: {message}") from error
        # Reserved first: functions may call each other.
        self._definitions[name] = ""
        known = _values_of(plain)
        for used in dict.fromkeys(n.id for n in ast.walk(tree) if isinstance(n, ast.Name)):
            if used != name and used in known:
                self._add(used, known[used], getattr(plain, "__module__", ""))
        del self._definitions[name]
        self._definitions[name] = text.rstrip()

    def _add(self, name: str, value: Any, module: str) -> None:  # noqa: ANN401 - any global
        if name in self._imports or name in self._constants or name in self._definitions:
            return
        if isinstance(value, ModuleType):
            alias = "" if value.__name__ == name else f" as {name}"
            self._imports[name] = f"import {value.__name__}{alias}"
            return
        origin, plain = _origin(value), plain_function(value)
        defined = plain is not None or isinstance(value, type)
        if defined and getattr(plain or value, "__module__", "") == module:
            own_name = (plain or value).__name__
            self.add_definition(own_name, value)
            if own_name != name:
                self._definitions[name] = f"{name} = {own_name}"
            return
        if origin is not None:
            home, own = origin
            alias = "" if own == name else f" as {name}"
            self._imports[name] = f"from {home} import {own}{alias}"
            return
        literal = _literal(value)
        if literal is None:
            message = f"it uses `{name}`, a {type(value).__name__}, which cannot be written out"
            raise ConfigError(f"{self._argument}: {message}; give a file or source text instead")
        self._constants[name] = f"{name} = {literal}"


def _values_of(value: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the values of the names that a function or class may use, but for builtins."""
    if isinstance(value, FunctionType):
        try:
            return {**value.__globals__, **inspect.getclosurevars(value).nonlocals}
        except ValueError:
            # A variable of the enclosing function has no value yet.
            return dict(value.__globals__)
    module = inspect.getmodule(value)
    return {} if module is None else dict(vars(module))


def _origin(value: Any) -> tuple[str, str] | None:  # noqa: ANN401
    """Return the module and the name from which a value can be imported."""
    home, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if not isinstance(home, str) or not isinstance(name, str) or home in ("__main__", "builtins"):
        return None
    try:
        found = getattr(importlib.import_module(home), name, None)
    except ImportError:
        return None
    return (home, name) if found is value else None


def _literal(value: Any) -> str | None:  # noqa: ANN401
    """Return a constant as source text; `None` if it is none."""
    if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
        return f"__import__('torch').{str(value).removeprefix('torch.')}"
    text = repr(value)
    try:
        same = len(text) <= MAX_LITERAL and ast.literal_eval(text) == value
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        same = getattr(builtins, text, None) is value
    return text if same else None


def entry_of(given: object) -> str | None:
    """Return the name of a candidate that is a function."""
    plain: Callable[..., Any] | None = plain_function(given)
    return None if plain is None else plain.__name__
