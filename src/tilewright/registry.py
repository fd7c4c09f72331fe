"""Plug-ins: found as entry points without an import, and loaded one by one.

The built-in plug-ins use the same entry points. An unknown name, a failed import, an old name and
two plug-ins of one name are errors, and each error says what to do.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from tilewright.errors import PluginError, boundary
from tilewright.records.renamed_python import new_import, renamed_uses

__all__ = ["KINDS", "OWN_PACKAGE", "Plugin", "catalogue", "load", "selected_checks"]

KINDS = ("checks", "languages", "problem_sets", "strategies", "worlds")
OWN_PACKAGE = "tilewright"

_EXTRAS = {"ninja": "cpp", "numpy": "judge", "torch": "judge", "triton": "triton"}


@dataclass(frozen=True)
class Plugin:
    """One installed plug-in: its kind and name, where it comes from and where it points."""

    kind: str
    name: str
    package: str
    version: str
    value: str
    """`module:attribute`."""


def catalogue(kind: str, *, packages: Collection[str] | None = None) -> dict[str, Plugin]:
    """Return the installed plug-ins of `kind` by name, sorted, importing none of them.

    `packages` (the setting `plugins`) names the packages that are admitted in addition to
    tilewright. `None` admits all.

    Raises:
        PluginError: there is no such kind, or two plug-ins share one name.
    """
    return {name: plugin for name, (plugin, _) in _scan(kind, packages).items()}


def selected_checks(packages: Collection[str] | None) -> tuple[str, ...] | None:
    """Return the names of the checks that run under the setting `plugins`; `None`: all."""
    return None if packages is None else tuple(catalogue("checks", packages=packages))


def load(kind: str, name: str, *, packages: Collection[str] | None = None) -> Any:  # noqa: ANN401 - any object
    """Import and return the object that plug-in `name` of `kind` points at.

    Raises:
        PluginError: it is unknown, not admitted, named twice, written for names that have changed,
            or cannot be imported.
    """
    found = _scan(kind, packages)
    if name not in found:
        installed = ", ".join(found) or "none"
        hint = "" if packages is None or name not in _scan(kind, None) else _not_admitted(name)
        raise PluginError(f"no plug-in {name!r} among {kind}; installed: {installed}{hint}")
    plugin, entry = found[name]
    with boundary(PluginError, f"cannot import {_where(plugin)}"):
        try:
            thing = entry.load()
        except ImportError as error:
            extra = _EXTRAS.get((error.name or "").partition(".")[0])
            hint = f"pip install 'tilewright[{extra}]'" if extra else new_import(error)
            if not hint:
                raise
            raise PluginError(f"cannot import {_where(plugin)}: {error}; {hint}") from error
    old = renamed_uses(kind, sys.modules[entry.module]) if plugin.package != OWN_PACKAGE else []
    if old:
        raise PluginError(f"{_where(plugin)} uses old names: {', '.join(old)}; update the plug-in")
    return thing


def _scan(
    kind: str, packages: Collection[str] | None
) -> dict[str, tuple[Plugin, importlib.metadata.EntryPoint]]:
    if kind not in KINDS:
        raise PluginError(f"no kind of plug-in is called {kind!r}; kinds: {', '.join(KINDS)}")
    admitted = None if packages is None else {_normalise(name) for name in packages}
    found: dict[str, tuple[Plugin, importlib.metadata.EntryPoint]] = {}
    for entry in importlib.metadata.entry_points(group=f"tilewright.{kind}"):
        plugin = _describe(kind, entry)
        package = _normalise(plugin.package)
        if admitted is not None and package != OWN_PACKAGE and package not in admitted:
            continue
        other = found.get(entry.name)
        if other is not None and other[0] != plugin:
            raise PluginError(
                f"two plug-ins share one name: {_where(other[0])} and {_where(plugin)}; "
                "uninstall one of the packages, or name the ones you want in the setting `plugins`"
            )
        found[entry.name] = (plugin, entry)
    return dict(sorted(found.items()))


def _describe(kind: str, entry: importlib.metadata.EntryPoint) -> Plugin:
    package = entry.dist.name if entry.dist is not None else "unknown"
    version = entry.dist.version if entry.dist is not None else "unknown"
    return Plugin(kind=kind, name=entry.name, package=package, version=version, value=entry.value)


def _where(plugin: Plugin) -> str:
    return f"{plugin.kind}/{plugin.name} ({plugin.value}, from {plugin.package} {plugin.version})"


def _not_admitted(name: str) -> str:
    return f"; {name!r} is installed, but the setting `plugins` does not admit its package"


def _normalise(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()
