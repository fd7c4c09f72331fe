"""The catalogue: each line names a module that is there, and the version that is tested."""

from __future__ import annotations

import importlib
import json

import pytest

from tilewright.integrations.catalogue import INTEGRATIONS, installed_version


@pytest.mark.parametrize("item", INTEGRATIONS, ids=lambda item: item.name)
def test_a_module_is_there_and_an_installed_version_is_the_tested_one(item):
    importlib.import_module(item.module)
    installed = installed_version(item)
    assert installed is None or item.tested.startswith(installed), item.name


def test_one_installed_version_is_read():
    assert [item.name for item in INTEGRATIONS if installed_version(item)] == ["pytest"]


def test_the_command_lists_each_integration(run):
    rows = json.loads(run("integrations", "list", "--json").stdout)
    assert [row["name"] for row in rows] == [item.name for item in INTEGRATIONS]
    assert rows[0]["installed"] is None
    assert "KernelBench" in run("integrations", "list").stdout
