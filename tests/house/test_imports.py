"""Who may import what, beyond the contracts that import-linter keeps."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.house.tree import ROOT, SOURCE, imports, name_of, python_files

HEAVY = {"numpy", "torch", "triton"}
LIGHT = [
    "tilewright",
    "tilewright.api",
    "tilewright.records",
    "tilewright.config",
    "tilewright.registry",
    "tilewright.scoring",
    "tilewright.checks",
    "tilewright.languages",
    "tilewright.problems",
    "tilewright.executors",
    "tilewright.rl.data.exports",
    "tilewright.rl.episodes",
    "tilewright.rl.explain",
    "tilewright.rl.training",
    "tilewright.rl.trl_reward",
    "tilewright.rl.verl_score",
    "tilewright.evaluator.supervisor",
    "tilewright.cli.main",
]


def exists(module: str) -> bool:
    path = SOURCE.parent.joinpath(*module.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


@pytest.mark.parametrize("module", [module for module in LIGHT if exists(module)])
def test_import_loads_no_torch(module):
    code = f"import sys, {module}; sys.exit(', '.join({HEAVY!r} & set(sys.modules)) or 0)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (answer.returncode, answer.stderr) == (0, "")


def test_the_contestant_imports_only_the_standard_library_torch_and_triton():
    allowed = set(sys.stdlib_module_names) | {"torch", "triton"}
    wrong = [
        f"{name_of(path)}: {module}"
        for path in python_files(under=SOURCE / "contestant")
        for module in sorted(imports(path))
        if module.partition(".")[0] not in allowed
        and not f"{module}.".startswith("tilewright.contestant.")
    ]
    assert not wrong


def test_torch_is_imported_only_beside_the_devices_and_to_learn():
    places = ("contestant", "evaluator/judge", "rl", "testing")
    allowed = tuple(SOURCE / place for place in places)
    wrong = [
        f"{name_of(path)}: {module}"
        for path in python_files(under=SOURCE)
        if not any(path.is_relative_to(folder) for folder in allowed)
        for module in sorted(imports(path))
        if module.partition(".")[0] in HEAVY
    ]
    assert not wrong


def test_trl_is_imported_only_by_its_adapter():
    theirs = {"trl", "peft", "accelerate", "datasets", "tokenizers"}
    wrong = [
        f"{name_of(path)}: {module}"
        for path in python_files(under=SOURCE / "rl")
        if not path.is_relative_to(SOURCE / "rl" / "engines" / "trl")
        for module in sorted(imports(path))
        if module.partition(".")[0] in theirs | {"transformers"}
    ]
    assert not wrong
