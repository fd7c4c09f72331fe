"""Small problems, and one device host per module, for tests of whole evaluations.

The supervisor's code runs in this process, so that coverage sees it; judge and runners are
real processes in the whole sandbox. Nothing here imports torch: a sandbox cannot be forked from
a process with threads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tilewright.evaluator.pipeline.run import evaluate
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.problems.candidates import make_candidate
from tilewright.problems.loader import parse_problem
from tilewright.records import (
    Candidate,
    EvalReport,
    EvalRequest,
    Failed,
    Limits,
    Problem,
    SourceFile,
    TimingPlan,
)

TWICE = """
import torch

ENTRY = "work"
CASES = [{"name": "small", "n": 5}, {"name": "large", "n": 60000}]
VARY = {"sizes": {"n": (1, 5000)}, "contents": ["nominal", "sign"]}

def inputs(case, generator):
    return (torch.randn(case["n"], generator=generator),)

def reference(x):
    return torch.tanh(x) * 2
"""
RIGHT = "import torch\ndef work(x):\n    return torch.tanh(x) * 2\n"
MODULE = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(16, 32)]

def get_init_inputs():
    return [32]
"""
MODULE_RIGHT = MODULE.replace("class Model(", "class ModelNew(").partition("def get_inputs")[0]
TIMED = TimingPlan(min_blocks=6, max_blocks=6, max_s=0.3)
UNTIMED = TimingPlan(enabled=False)
LIMITS = Limits(load_s=10, call_timeout_s=10, exit_s=2, total_timeout_s=60)


def problem(text: str = TWICE) -> Problem:
    """Return the problem in `text`."""
    return parse_problem(text, "test", "work", "the test's problem")


def candidate(text: str, given: Problem, path: str = "candidate.py") -> Candidate:
    """Return the candidate in `text`, also where it does not parse."""
    made = make_candidate((SourceFile(path=path, text=text),), given)
    if isinstance(made, tuple):
        assert isinstance(made[1], Failed)
        return made[0]
    return made


def request(
    text: str, problem_text: str = TWICE, *, path: str = "candidate.py", **changes: Any
) -> EvalRequest:
    """Return an untimed request."""
    given = problem(problem_text)
    fields = {"timing": UNTIMED, "limits": LIMITS, "baselines": (), **changes}
    return EvalRequest(problem=given, candidate=candidate(text, given, path), **fields)


class Bench:
    """A host, and the events of its last evaluation."""

    def __init__(self, home: Path) -> None:
        self.host = DeviceHost(home)
        self.events: list[tuple[str, dict[str, Any]]] = []

    def judge(self, asked: EvalRequest, **options: Any) -> EvalReport:
        """Evaluate a request in this process."""
        self.events = []
        emit = options.pop("emit", lambda *_: None)

        def note(event: str, fields: dict[str, Any]) -> None:
            self.events.append((event, fields))
            emit(event, fields)

        try:
            return evaluate(self.host, asked, note, lambda: None, **options)
        finally:
            # As the supervisor does once the report is out.
            self.host.wait_closed()

    def named(self, event: str) -> list[dict[str, Any]]:
        """Return the fields of the events of one kind."""
        return [fields for name, fields in self.events if name == event]

    def inits(self) -> list[int]:
        """Return the living processes right below the forkserver, the oldest first."""
        pid = self.host.forkserver.pid
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
        return sorted(int(word) for word in text.split() if not _is_zombie(int(word)))


def _is_zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] == "Z"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Yield a bench for the whole module; its forkserver starts once."""
    cores = os.sched_getaffinity(0)
    made = Bench(tmp_path_factory.mktemp("home"))
    yield made
    made.host.close()
    os.sched_setaffinity(0, cores)
