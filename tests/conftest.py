"""Shared by all tests: options, markers that depend on the machine, and Hypothesis settings."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Read when numpy is imported, as torch does: no sandbox can be forked from a process of threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

WORKER = os.environ.get("PYTEST_XDIST_WORKER")
COUNT = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
CORES = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []
EVALUATING = {Path(__file__).parent / name for name in ("processes", "services")}
"""Folders of tests that start evaluations nearly all the time."""
KEPT = pytest.StashKey[set[int]]()

# Machines differ in speed, so no example has a deadline; pytest-timeout bounds whole tests.
# Hypothesis would call data that a busy machine generates slowly an error, too.
settings.register_profile(
    "tilewright", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tilewright")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--network", action="store_true", help="run tests that leave the machine")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run, and let files of slow evaluations begin first."""
    slow = {
        item.path
        for item in items
        if item.path.parent in EVALUATING and item.get_closest_marker("slow")
    }
    items.sort(key=lambda item: item.path not in slow)
    skips = {}
    if not config.getoption("--network"):
        skips["network"] = pytest.mark.skip(reason="leaves the machine; pytest --network runs it")
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        skips["gpu"] = pytest.mark.skip(reason="no CUDA device")
    for item in items:
        for name, skip in skips.items():
            if item.get_closest_marker(name):
                item.add_marker(skip)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Keep a worker of pytest-xdist on cores of its own, but for tests with the mark `timed`.

    Evaluations on the same cores wait for each other. Those that time something need two cores.
    """
    if WORKER is None or sys.platform != "linux":
        return
    own = set(CORES[int(WORKER.removeprefix("gw")) % len(CORES) :: COUNT])
    times = len(own) < 2 and item.get_closest_marker("timed") is not None
    wanted = own if item.path.parent in EVALUATING and not times else set(CORES)
    # A host in this process chooses among them for as long as a module lasts.
    if item.config.stash.get(KEPT, set(CORES)) != wanted:
        os.sched_setaffinity(0, wanted)
        item.config.stash[KEPT] = wanted
