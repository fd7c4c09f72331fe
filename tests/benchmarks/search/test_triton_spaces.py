"""The judge finds the flaws of Triton programs, on small cases and in Triton's interpreter."""

from __future__ import annotations

import pytest

from tests.space_programs import changed
from tilewright import config
from tilewright.executors.local import LocalExecutor
from tilewright.problems.loader import parse_problem
from tilewright.problems.requests import build_request
from tilewright.spaces import SPACES
from tilewright.spaces.space import source

SMALLER = {
    '"m": 2048, "k": 2048, "n": 4096': '"m": 70, "k": 130, "n": 100',
    '"rows": 4096, "cols": 5000': '"rows": 5, "cols": 5000',
    '"m": (1, 200), "k": (1, 600), "n": (5, 300)': '"m": (1, 80), "k": (1, 200), "n": (5, 150)',
    '"rows": (1, 300)': '"rows": (1, 6)',
}
FUSED = {"stages": 3, "warps": 8, "group": 8, "fused": "all", "block_m": 64}
PLAIN = {"warps": 8, "vector": 4}
PROGRAMS = [
    ("triton_gemm", FUSED, "correct"),
    ("triton_gemm", {**FUSED, "sums": "bfloat16"}, "incorrect"),
    ("triton_gemm", {**FUSED, "result": "unused"}, "rejected"),
    ("triton_softmax", {"passes": 2, "rows": 4, "exponential": "exp2"}, "correct"),
    ("triton_softmax", {"passes": 1, "block": 4096}, "incorrect"),
    ("triton_softmax", {"rows": 8, "block": 8192}, "failed"),
    ("triton_softmax", {**PLAIN, "passes": 2, "shift": "none"}, "incorrect"),
    ("triton_softmax", {**PLAIN, "result": "kept"}, "incorrect"),
]


@pytest.fixture(scope="module")
def executor(tmp_path_factory):
    with LocalExecutor(tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "more", "verdict"), PROGRAMS)
def test_a_program_gets_the_verdict_of_its_knobs(executor, name, more, verdict):
    space = SPACES[name]
    text = space.problem_path.read_text(encoding="utf-8")
    for old, new in SMALLER.items():
        text = text.replace(old, new)
    problem = parse_problem(text, f"spaces/{name}", name, "test")
    settings = config.load(None, ["eval.timing.enabled=false"])
    request = build_request(source(space, changed(space, **more)), problem, settings)
    report = executor.evaluate(request)
    assert report.verdict == verdict, report.outcome
