"""Rules for imports beyond the contracts of import-linter."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import re
import subprocess
import sys

import pytest

from tests.conventions.tree import ROOT, SOURCE, imports, name_of, python_files

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
    "tilewright.knowledge",
    "tilewright.problems",
    "tilewright.executors",
    "tilewright.rl.data.exports",
    "tilewright.rl.episodes",
    "tilewright.rl.preset_text",
    "tilewright.rl.training_config",
    "tilewright.rl.trl_reward",
    "tilewright.rl.verl_score",
    "tilewright.evaluator.server",
    "tilewright.integrations.kernelbench_run",
    "tilewright.integrations.pytest_plugin",
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


def test_the_runner_imports_only_the_standard_library_torch_triton_and_wire():
    allowed = set(sys.stdlib_module_names) | {"torch", "triton"}
    wrong = [
        f"{name_of(path)}: {module}"
        for path in python_files(under=SOURCE / "runner")
        for module in sorted(imports(path))
        if module.partition(".")[0] not in allowed
        and not f"{module}.".startswith(("tilewright.runner.", "tilewright.wire."))
    ]
    assert not wrong


def test_only_the_judge_the_runner_the_wire_and_training_import_torch():
    places = ("runner", "wire", "evaluator/judge", "rl", "testing", "loop/policies/local_model.py")
    allowed = tuple(SOURCE / place for place in places)
    wrong = [
        f"{name_of(path)}: {module}"
        for path in python_files(under=SOURCE)
        if not any(path.is_relative_to(folder) for folder in allowed)
        for module in sorted(imports(path))
        if module.partition(".")[0] in HEAVY
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("engine", "theirs"),
    [
        ("trl", {"trl", "peft", "accelerate", "datasets", "tokenizers"}),
        ("verl", {"verl", "hydra", "omegaconf", "tensordict", "transfer_queue"}),
        ("*", {"transformers"}),
    ],
)
def test_only_an_engine_imports_its_packages(engine, theirs):
    wrong = [
        f"{name_of(path)}: {module}"
        for path in python_files(under=SOURCE / "rl")
        if not path.match(f"rl/engines/{engine}/*.py")
        for module in sorted(imports(path))
        if module.partition(".")[0] in theirs
    ]
    assert not wrong


def test_attacks_on_our_own_code_name_modules_that_exist():
    # An attack that does not find its target falls back to honest work, and looks defeated.
    named = {
        (path.name, name)
        for path in sorted((ROOT / "tests" / "corpus").rglob("*"))
        if path.suffix in (".py", ".cpp", ".cu")
        for name in re.findall(r"^\s*import (tilewright[\w.]+)", path.read_text("utf-8"), re.M)
    }
    assert len(named) >= 8
    assert [item for item in sorted(named) if importlib.util.find_spec(item[1]) is None] == []


def test_attacks_on_our_own_code_name_attributes_that_exist():
    missing, seen = [], 0
    for path in sorted((ROOT / "tests" / "corpus").rglob("*")):
        if path.suffix not in (".py", ".cpp", ".cu"):
            continue
        text = path.read_text("utf-8")
        for module, name in re.findall(r"^\s*import (tilewright[\w.]+) as (\w+)", text, re.M):
            for chain in set(re.findall(rf"\b{name}((?:\.\w+)+)", text)):
                seen += 1
                try:
                    functools.reduce(getattr, chain[1:].split("."), importlib.import_module(module))
                except AttributeError:
                    missing.append((path.name, module + chain))
    assert seen >= 8
    assert missing == []


@pytest.mark.parametrize("name", ["page", "sequence", "call", "fields"])
def test_attacks_that_search_frames_find_the_variables_of_a_timed_call(name):
    source = (SOURCE / "runner" / "host_memory.py").read_text("utf-8")
    (memory,) = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == "HostCallMemory"
    ]
    (timed,) = [
        node for node in memory.body if isinstance(node, ast.FunctionDef) and node.name == "timed"
    ]
    stored = {node.id for node in ast.walk(timed) if isinstance(node, ast.Name)}
    assert name in stored | {argument.arg for argument in timed.args.args}
