"""Every tool that is configured is run, and what git tracks is shipped."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile

import pytest

from tests.conventions.tree import ROOT, name_of, tracked

# The command that runs each tool of pyproject.toml.
COMMANDS = {
    "coverage": "/coverage run",
    "importlinter": "/lint-imports",
    "mypy": "/mypy",
    "pytest": " -m pytest",
    "ruff": "/ruff check",
    "towncrier": "/towncrier build --draft",
}
# Run by pip itself.
BUILD = {"hatch"}
# Measured on request and as a bar, for it doubles the time of the tests.
ON_REQUEST = {"coverage"}


def dry_run(*targets: str) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    command = ["make", "--dry-run", *targets]
    answer = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return answer.stdout


def configured() -> set[str]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return set(tomllib.load(file)["tool"]) - BUILD


def test_every_configured_tool_has_a_command():
    assert configured() == set(COMMANDS)


@pytest.mark.parametrize("tool", sorted(COMMANDS))
def test_every_configured_tool_is_run(tool):
    targets = ["coverage"] if tool in ON_REQUEST else ["check", "test"]
    assert COMMANDS[tool] in dry_run(*targets)


def test_continuous_integration_runs_the_same_targets():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "set -euo pipefail" in script
    for target in ("install", "check", "test", "services"):
        assert re.search(rf"\nstep make (--[a-z=0-9-]+ )*{target}( CHOSEN=.*)?\n", script), target


def test_make_check_runs_the_formatter_the_generator_and_the_prose_check():
    commands = dry_run("check")
    assert "/ruff format --check" in commands
    assert "docs/_generate.py --check" in commands
    assert "docs/_prose.py" in commands


def test_the_base_install_is_light_and_uncapped():
    with (ROOT / "pyproject.toml").open("rb") as file:
        base = tomllib.load(file)["project"]["dependencies"]
    assert {name.partition(">")[0] for name in base} == {"click", "pydantic", "pyyaml", "rich"}
    assert not [name for name in base if "<" in name or "==" in name or "~=" in name]


def test_the_wheel_holds_every_tracked_file(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run(
        [*command, "--directory", str(tmp_path)], cwd=ROOT, check=True, capture_output=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    shipped = set(zipfile.ZipFile(wheel).namelist())
    wanted = {name_of(path) for path in tracked()}
    wanted = {name.removeprefix("src/") for name in wanted if name.startswith("src/")}
    assert not wanted - shipped
