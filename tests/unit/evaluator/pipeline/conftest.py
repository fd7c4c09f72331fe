"""The evaluator in one process that tests of whole evaluations share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.in_process_evaluator import InProcessEvaluator


@pytest.fixture
def evaluator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcessEvaluator]:
    made = InProcessEvaluator(tmp_path, monkeypatch)
    yield made
    made.close()
