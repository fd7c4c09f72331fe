"""Shared by all tests: options, markers that depend on the machine, and Hypothesis settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Read when numpy is imported, as torch does: no sandbox can be forked from a process of threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Machines differ in speed, so no example has a deadline; pytest-timeout bounds whole tests.
settings.register_profile("tilewright", deadline=None, print_blob=True)
settings.load_profile("tilewright")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--network", action="store_true", help="run tests that leave the machine")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    skips = {}
    if not config.getoption("--network"):
        skips["network"] = pytest.mark.skip(reason="leaves the machine; pytest --network runs it")
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        skips["gpu"] = pytest.mark.skip(reason="no CUDA device")
    for item in items:
        for name, skip in skips.items():
            if item.get_closest_marker(name):
                item.add_marker(skip)
