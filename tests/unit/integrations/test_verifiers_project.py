"""A made project for verifiers: its files, and names that cannot be."""

from __future__ import annotations

import ast
import tomllib

import pytest

from tilewright.integrations.verifiers_project import write_project


def test_the_project_is_a_package_with_four_names(run, tmp_path):
    done = run("integrations", "new", "verifiers", "My-Kernels", "--dir", str(tmp_path))
    assert (done.exit_code, "vf-eval My-Kernels --no-push" in done.stderr) == (0, True)
    project = tomllib.loads((tmp_path / "My-Kernels" / "pyproject.toml").read_text())
    assert project["project"]["name"] == "My-Kernels"
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["my_kernels"]
    tree = ast.parse((tmp_path / "My-Kernels" / "my_kernels" / "__init__.py").read_text())
    (imported,) = (node for node in tree.body if isinstance(node, ast.ImportFrom))
    assert imported.module == "tilewright.integrations.verifiers"
    assert {"Kernels", "KernelsConfig"} <= {item.name for item in imported.names}


@pytest.mark.parametrize(
    "name", ["../up", "1st", "a b", "", "class", "verifiers", "json", "x" * 99 + "/"]
)
def test_a_name_that_cannot_be_a_package_is_refused(run, tmp_path, name):
    done = run("integrations", "new", "verifiers", "--dir", str(tmp_path), "--", name)
    assert (done.exit_code, list(tmp_path.iterdir())) == (2, [])


def test_nothing_is_overwritten(tmp_path):
    write_project("one", tmp_path)
    with pytest.raises(ValueError, match="there already"):
        write_project("one", tmp_path)
