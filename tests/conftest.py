"""Shared by all tests: options, markers that depend on the machine, and Hypothesis settings."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Read when numpy is imported, as torch does: no sandbox can be forked from a process of threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

WORKERS = "PYTEST_XDIST_WORKER_COUNT"

# Machines differ in speed, so no example has a deadline; pytest-timeout bounds whole tests.
settings.register_profile("tilewright", deadline=None, print_blob=True)
settings.load_profile("tilewright")


def pytest_configure() -> None:
    """Give each worker of pytest-xdist cores of its own, if there are any.

    Evaluations on the same cores wait for each other, and on other cores they do not.
    """
    worker, count = os.environ.get("PYTEST_XDIST_WORKER"), os.environ.get(WORKERS, "1")
    if worker is not None and sys.platform == "linux":
        os.sched_setaffinity(0, cores_of(int(worker.removeprefix("gw")), int(count)))


def cores_of(worker: int, count: int) -> set[int]:
    """Return the cores of one of `count` workers, which share those of this process."""
    cores = sorted(os.sched_getaffinity(0))
    return set(cores[worker % len(cores) :: count])


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
