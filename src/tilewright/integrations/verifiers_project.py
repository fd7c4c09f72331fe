"""A project for verifiers: a package that `vf-eval NAME` finds."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path

from tilewright.errors import ConfigError, writing

TAKEN = frozenset({"tilewright", "verifiers", *sys.stdlib_module_names})
"""Modules that the module of a project would hide."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*")
_INIT = '''"""Kernels, judged by tilewright. --env.taskset.problems ADDRESS chooses the problems."""

from tilewright.integrations.verifiers import Kernels, KernelsConfig, KernelsEnv, KernelsHarness

__all__ = ["Kernels", "KernelsConfig", "KernelsEnv", "KernelsHarness"]
'''
_PYPROJECT = """[project]
name = "{name}"
version = "0.1.0"
description = "GPU kernels, judged by tilewright"
requires-python = ">=3.11"
dependencies = ["tilewright[judge,verifiers]"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel]
packages = ["{module}"]
"""


def write_project(name: str, parent: Path) -> list[Path]:
    """Write the project NAME below `parent`; return its files.

    Raises:
        ConfigError: the name cannot be that of a package, or a file is there already.
    """
    module = name.replace("-", "_").lower()
    if not _NAME.fullmatch(name) or keyword.iskeyword(module):
        raise ConfigError(f"{name[:60]!r} cannot be the name of a package; write my-kernels, say")
    if module in TAKEN:
        raise ConfigError(f"{name!r}: the module {module} exists already; choose another name")
    folder = parent / name
    texts = {
        folder / "pyproject.toml": _PYPROJECT.format(name=name, module=module),
        folder / module / "__init__.py": _INIT,
    }
    taken = [str(path) for path in texts if path.exists()]
    if taken:
        raise ConfigError(f"{', '.join(taken)}: there already; nothing was overwritten")
    for path, text in texts.items():
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return list(texts)
