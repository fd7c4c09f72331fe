"""The catalogue: each line names a module that is there, and the version that is tested."""

from __future__ import annotations

import importlib
import json

import pytest

from tilewright.errors import ConfigError
from tilewright.integrations.catalogue import INTEGRATIONS, installed_version


@pytest.mark.parametrize("item", INTEGRATIONS, ids=lambda item: item.name)
def test_a_module_is_there_and_needs_its_package_alone(item):
    version = installed_version(item)
    if item.versions and version is None:
        # `verifiers` imports nothing until a name is used.
        with pytest.raises(ConfigError, match="pip install 'tilewright"):
            getattr(importlib.import_module(item.module), "Kernels", None)
    else:
        importlib.import_module(item.module)
    if not item.versions:
        assert version is None or item.tested.startswith(version), item.name


def test_the_version_of_pytest_is_read():
    assert [
        item.name for item in INTEGRATIONS if installed_version(item) == pytest.__version__
    ] == ["pytest"]


def test_the_command_lists_each_integration(run):
    rows = json.loads(run("integrations", "list", "--json").stdout)
    assert [row["name"] for row in rows] == [item.name for item in INTEGRATIONS]
    assert rows[0]["installed"] is None
    assert {row["name"]: row["range"] for row in rows}["inspect"] == ">=0.3.285,<0.4"
    assert "KernelBench" in run("integrations", "list").stdout
