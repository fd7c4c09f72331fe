"""Settings with a home and run folders of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tilewright import api
from tilewright.config import Config, load


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Config]:
    """Yield settings whose home and run folders are temporary."""
    folder = tmp_path_factory.mktemp("integrations")
    overrides = [f"home={folder / 'home'}", f"runs={folder / 'runs'}", "host=never"]
    yield load(overrides=[*overrides, "eval.limits.call_timeout_s=3"], environ={})
    executor = api._executors.pop(("local", folder / "home", "never"), None)
    if executor is not None:
        executor.close()
