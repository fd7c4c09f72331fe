"""Which source may use several CUDA streams."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.in_process_evaluator import InProcessEvaluator, a_request
from tilewright.languages.stream_use import names_streams
from tilewright.records import SourceFile

PROBLEM = """import torch

CASES = [{"name": "one", "n": 16}]


def inputs(case, generator):
    return (torch.rand(case["n"], 8, generator=generator),)


def reference(x):
    return x * 3 + 1
"""
HONEST = "def work(x):\n    return x * 3 + 1\n"


@pytest.fixture
def evaluator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcessEvaluator]:
    """Yield a host whose children are threads."""
    made = InProcessEvaluator(tmp_path, monkeypatch)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("text", "several"),
    [
        ("def work(x):\n    return x + 1\n", False),
        ("with torch.cuda.stream(side):\n    pass\n", True),
        ("cudaStream_t side;\n", True),
        ("graph = torch.cuda.CUDAGraph()\n", True),
        ("self.lstm = nn.LSTM(8, 8)\n", True),
        ("kind = getattr(nn, 'GRU')\n", True),
        ("torch.linalg.solve(a, b)\n", True),
    ],
)
def test_stream_use_is_recognised_from_the_source(text, several):
    files = (SourceFile(path="a.py", text="import torch\n"), SourceFile(path="b.py", text=text))
    assert names_streams(files) is several


@pytest.mark.parametrize(("more", "several"), [("", []), ("# on a side stream\n", ["runner"])])
def test_a_candidate_of_several_streams_gets_a_runner_with_all_queues(evaluator, more, several):
    assert evaluator.judge(a_request(PROBLEM, HONEST + more)).verdict == "correct"
    assert evaluator.streams == several
