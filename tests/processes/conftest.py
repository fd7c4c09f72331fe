"""A sandbox is forked from a process of one thread; elsewhere a test gets a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test marked `one_thread` elsewhere when this process has threads; fail as it fails."""
    if not pyfuncitem.get_closest_marker("one_thread") or len(os.listdir("/proc/self/task")) == 1:
        return None
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", pyfuncitem.nodeid],
        capture_output=True,
        text=True,
        cwd=pyfuncitem.config.rootpath,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    if done.returncode:
        pytest.fail(done.stdout)
    return True
