"""Each bar is one module with one entry, and `make` and CONTRIBUTING name all of them."""

from __future__ import annotations

import ast
import re

import pytest

from benchmarks.__main__ import BARS
from tests.conventions.tree import ROOT

BENCHMARKS = ROOT / "benchmarks"


def tree(module: str) -> ast.Module:
    path = BENCHMARKS / f"{module.replace('.', '/')}.py"
    return ast.parse(path.read_text(encoding="utf-8"))


def gpu_parts() -> set[str]:
    """Return the names that `python -m benchmarks.gpu` takes; importing it would need a GPU."""
    found: set[str] = set()
    for node in tree("gpu.__main__").body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
            if name in ("OUTPUT_ONLY", "WITH_PROBLEMS") and isinstance(value, ast.Dict):
                found |= {ast.literal_eval(key) for key in value.keys if key is not None}
            elif name == "PARTS" and isinstance(value, ast.Tuple):
                found |= {item.value for item in value.elts if isinstance(item, ast.Constant)}
    return found


@pytest.mark.parametrize("name", sorted(BARS))
def test_each_bar_is_one_module_with_one_entry(name):
    found = tree(BARS[name])
    entries = [node for node in found.body if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in entries].count("run") == 1
    assert (ast.get_docstring(found) or "").startswith(("Bar: ", "Bars: "))


def test_no_two_bars_share_a_module():
    assert len(set(BARS.values())) == len(BARS)


def test_make_and_contributing_name_every_bar():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(\w+)` \|", contributing, re.MULTILINE))
    for variable, names in (("ONLY", set(BARS)), ("PART", gpu_parts() - {"smoke", "calibrate"})):
        listed = re.search(rf"{variable}=([\w|]+)$", makefile, re.MULTILINE)
        assert listed is not None
        assert set(listed[1].split("|")) == names
        assert names <= rows
