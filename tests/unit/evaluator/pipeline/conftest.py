"""The evaluator in one process that tests of whole evaluations share, and a device of several."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.in_process_evaluator import ROOT, InProcessEvaluator, a_request
from tests.shared_device import GIB, HONEST, PROBLEM, SIBLING, TOTAL, Start
from tilewright.evaluator.context import EvaluationContext
from tilewright.evaluator.devices.nvml import Conditions
from tilewright.evaluator.pipeline import memory_admission, session, strangers
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.processes.memory_ledger import MemoryLedger
from tilewright.evaluator.processes.prefork import lease_folder


@pytest.fixture
def evaluator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcessEvaluator]:
    made = InProcessEvaluator(tmp_path, monkeypatch)
    yield made
    made.close()


@pytest.fixture
def shared(evaluator: InProcessEvaluator, tmp_path: Path) -> Iterator[Start]:
    """Give the evaluator a device that others share; start such others."""
    lease, running = f"test-{tmp_path.name}-{id(evaluator)}", list[subprocess.Popen[bytes]]()
    evaluator.ledger = MemoryLedger(lease)

    def start(held: int = 40 * GIB, how: str = "answers") -> Path:
        memory = tmp_path / f"memory-{len(running)}"
        command = [sys.executable, "-c", SIBLING, lease, str(memory), str(held), how]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE))
        output = running[-1].stdout
        assert output is not None
        assert output.readline()
        return memory

    yield start
    for process in running:
        process.kill()
        process.communicate()
    evaluator.ledger.close()
    shutil.rmtree(lease_folder() / f"{lease}.memory")


@pytest.fixture
def begun(evaluator: InProcessEvaluator, shared: Start, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a session on a device of 80 GiB of which strangers hold what `strangers` says."""

    def used() -> int:
        theirs = sum(evaluator.ledger.others().values()) if evaluator.ledger else 0
        return made.strangers + theirs + evaluator.held_bytes

    def state(_: str) -> Conditions:
        return Conditions(used_bytes=used(), total_bytes=TOTAL, busy_percent=3)

    context = EvaluationContext(
        evaluator, a_request(PROBLEM, HONEST), ROOT, lambda *_: None, lambda: None
    )
    made: Any = SimpleNamespace(strangers=0, session=EvaluationSession(context), start=shared)
    made.session.on_gpu = True
    for module in (session, memory_admission, strangers):
        monkeypatch.setattr(module, "conditions", state)
    return made
