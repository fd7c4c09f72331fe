"""What the tests of one room share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def problem_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let problems be loaded in this process, and leave nothing of them."""
    monkeypatch.setitem(sys.modules, "tilewright_problem", None)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def judge(problem_room: None) -> Iterator[object]:  # noqa: ARG001
    """Yield a `JudgeRole`."""
    import torch

    from tests.judge_role import JudgeRole

    threads = torch.get_num_threads()
    role = JudgeRole()
    yield role
    role.close()
    torch.set_num_threads(threads)
