"""The packages of integrations: ranges, the extras of pyproject.toml, and one line for a user."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.conventions.tree import ROOT
from tilewright.errors import ConfigError
from tilewright.integrations.catalogue import INTEGRATIONS, allowed_range, state_of
from tilewright.integrations.packages import (
    PACKAGES,
    Package,
    in_range,
    installed,
    release,
    require,
)

HERE = installed("pytest") or ""


def test_old_pip_finds_every_extra():
    """pip 23.2 compares the name as it is written with the one of the metadata (PEP 685)."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name in project["optional-dependencies"]:
        assert name == re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("0.3.285", (0, 3, 285)), ("1.2.0rc1", (1, 2, 0)), ("2.0.post1", (2, 0)), ("", ())],
)
def test_the_numbers_of_a_version(version, numbers):
    assert release(version) == numbers


@pytest.mark.parametrize(
    ("version", "inside"), [("0.4.0", True), ("0.4.9", True), ("0.5", False), ("0.3.9", False)]
)
def test_a_range_has_its_first_version_and_not_its_end(version, inside):
    assert in_range(version, Package("a", "a", "0.4.0", "0.5")) == inside


@pytest.mark.parametrize(
    ("package", "message"),
    [
        (Package("no-such-package", "x", "1", "2"), "needs the package no-such-package: pip inst"),
        (Package("pytest", "x", "1", "2"), f"pytest {HERE} is too new; .*>=1,<2: pip install"),
        (Package("pytest", "x", "1000", "1001"), f"pytest {HERE} is too old"),
    ],
)
def test_a_package_that_does_not_fit_is_one_line_with_the_command(package, message):
    with pytest.raises(ConfigError, match=message) as error:
        require(package)
    assert (error.value.exit_code, "\n" in str(error.value)) == (2, False)
    assert "pip install 'tilewright[x]'" in str(error.value)


def test_the_first_package_that_fits_is_returned():
    fits = Package("pytest", "new", "1", "1000")
    assert require(Package("pytest", "old", "1", "2"), fits) is fits


def test_each_extra_states_its_allowed_range():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert {item.extra: [item.requirement] for item in PACKAGES} == {
        item.extra: extras.get(item.extra) for item in PACKAGES
    }


@pytest.mark.parametrize("item", INTEGRATIONS, ids=lambda item: item.name)
def test_an_installed_version_is_in_the_allowed_range(item):
    version = installed(item.package) if item.package else None
    assert state_of(item, version) != "not a tested version", (item.name, allowed_range(item))


def test_the_state_names_a_version_that_is_out_of_range():
    item = next(item for item in INTEGRATIONS if item.name == "openenv")
    assert state_of(item, None) == "not installed"
    assert state_of(item, "0.10.0") == "ready"
    assert state_of(item, "0.11.0") == "not a tested version"
    assert allowed_range(item) == ">=0.10.0,<0.11"
