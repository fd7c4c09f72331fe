"""Plug-ins: found as entry points without an import, and loaded one by one.

The built-in plug-ins use the same entry points. An unknown name, a failed import, an old name and
two plug-ins of one name are errors, and each error says what to do.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from tilewright.errors import PluginError, boundary, suggestion

KINDS = (
    "checks",
    "engines",
    "languages",
    "problem_sets",
    "recipes",
    "rewards",
    "strategies",
    "worlds",
)
_ONE_OF = {
    "checks": "check",
    "engines": "engine",
    "languages": "language",
    "problem_sets": "problem set",
    "recipes": "recipe",
    "rewards": "reward",
    "strategies": "strategy",
    "worlds": "world",
}
OWN_PACKAGE = "tilewright"
RENAMED: dict[str, Any] = json.loads(
    Path(__file__).with_name("renamed_plugins.json").read_text(encoding="utf-8")
)
"""Old names and new ones. Plug-ins import `modules` and `classes`; a kind of plug-in reads
`attributes` and defines `methods`."""
_EXTRAS = {"ninja": "cpp", "numpy": "judge", "torch": "judge", "triton": "triton"}


@dataclass(frozen=True)
class Plugin:
    """One installed plug-in: its kind and name, where it comes from and where it points."""

    kind: str
    name: str
    package: str
    version: str
    entry: importlib.metadata.EntryPoint

    def __str__(self) -> str:
        """Return its name and origin, for messages."""
        origin = f"{self.entry.value}, from {self.package} {self.version}"
        return f"{self.kind}/{self.name} ({origin})"


def catalogue(kind: str, *, packages: Collection[str] | None = None) -> dict[str, Plugin]:
    """Return the installed plug-ins of `kind` by name, sorted, importing none of them.

    `packages` (the setting `plugins`) names the packages that are admitted in addition to
    tilewright. `None` admits all.
    """
    if kind not in KINDS:
        raise PluginError(f"no kind of plug-in is called {kind!r}; kinds: {', '.join(KINDS)}")
    admitted = None if packages is None else {OWN_PACKAGE, *map(_normalise, packages)}
    found: dict[str, Plugin] = {}
    origins: dict[importlib.metadata.Distribution | None, tuple[str, str]] = {}
    for entry in importlib.metadata.entry_points(group=f"tilewright.{kind}"):
        if (dist := entry.dist) not in origins:
            # Each access of an attribute parses the metadata of the package.
            origins[dist] = ("unknown",) * 2 if dist is None else (dist.name, dist.version)
        package, version = origins[dist]
        plugin = Plugin(kind, entry.name, package, version, entry)
        if admitted is not None and _normalise(package) not in admitted:
            continue
        other = found.setdefault(entry.name, plugin)
        if other != plugin:
            raise PluginError(
                f"two plug-ins share one name: {other} and {plugin}; "
                "uninstall one of the packages, or name the ones you want in the setting `plugins`"
            )
    return dict(sorted(found.items()))


def foreign_packages(kinds: Collection[str]) -> list[str]:
    """Return the import packages of installed plug-ins that are not ours; import none of them."""
    entries = (
        entry
        for kind in kinds
        for entry in importlib.metadata.entry_points(group=f"tilewright.{kind}")
    )
    return sorted({entry.module.partition(".")[0] for entry in entries} - {OWN_PACKAGE})


def selected_checks(packages: Collection[str] | None) -> tuple[str, ...] | None:
    """Return the names of the checks that run under the setting `plugins`; `None`: all."""
    return None if packages is None else tuple(catalogue("checks", packages=packages))


def load(kind: str, name: str, *, packages: Collection[str] | None = None) -> Any:  # noqa: ANN401 - any object
    """Import and return the object that plug-in `name` of `kind` points at.

    Raises:
        PluginError: it is unknown, not admitted, named twice, written for names that have changed,
            or cannot be imported.
    """
    found = catalogue(kind, packages=packages)
    if name not in found:
        installed = ", ".join(found) or "none"
        hint = ""
        if name in catalogue(kind):
            hint = "it is installed, but the setting `plugins` does not admit its package"
        near = suggestion(name, found) or f"installed: {installed}"
        raise PluginError(f"no {_ONE_OF[kind]} {name!r}; {hint or near}")
    plugin = found[name]
    with boundary(PluginError, f"cannot import {plugin}"):
        try:
            thing = plugin.entry.load()
        except ImportError as error:
            extra = _EXTRAS.get((error.name or "").partition(".")[0])
            hint = f"pip install 'tilewright[{extra}]'" if extra else _new_import(error)
            if not hint:
                raise
            raise PluginError(f"cannot import {plugin}: {error}; {hint}") from error
    is_own = plugin.package == OWN_PACKAGE
    if not is_own and (old := renamed_uses(kind, sys.modules[plugin.entry.module])):
        raise PluginError(f"{plugin} uses old names: {', '.join(old)}; update the plug-in")
    return thing


def renamed_uses(kind: str, module: ModuleType) -> list[str]:
    """Return what a plug-in of `kind` uses by an old name, each in words."""
    functions = list(_functions(module))
    read = {name for function in functions for name in _attributes(function.__code__)}
    defined = {function.__name__ for function in functions} | set(vars(module))
    attributes = RENAMED["attributes"].get(kind, {})
    methods = RENAMED["methods"].get(kind, {})
    old = {name: new for name, new in attributes.items() if name in read - defined}
    old |= {name: new for name, new in methods.items() if name in defined and new not in defined}
    return [f"{name} is now {new}" for name, new in old.items()]


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    for thing in vars(module).values():
        if getattr(thing, "__module__", None) == module.__name__:
            members = vars(thing).values() if isinstance(thing, type) else (thing,)
            yield from (item for item in members if isinstance(item, FunctionType))


def _attributes(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _attributes(constant)


def _new_import(error: ImportError) -> str:
    """Return the new name of what could not be imported, in words; empty if it has none."""
    for old, new in (RENAMED["modules"] | RENAMED["classes"]).items():
        if f"'{old}'" in error.msg or (old == error.name and old in RENAMED["modules"]):
            return f"{old} is now {new}"
    return ""


def _normalise(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()
