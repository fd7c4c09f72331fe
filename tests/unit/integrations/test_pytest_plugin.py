"""The pytest plug-in in projects of its own: passes, failures, skips, and its cost."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.problems.template import write_new

UNTIMED = 'config=["eval.timing.enabled=false"]'
HEAD = "import pytest\n"
WRONG = 'candidate="def mine(x):\\n    return x\\n"'
LONG = 'candidate="def mine(x): return x' + " + 0" * 1500 + '"'
RANDOM = """
import torch

ENTRY = "mine"
CASES = [{"name": "one", "rows": 3}]


def inputs(case, generator):
    return (torch.randn(case["rows"], 8, generator=generator),)


def reference(x):
    return x + torch.rand_like(x)
"""
SLOWER = """

fast = mine


def mine(x):
    for _ in range(9):
        fast(x)
    return fast(x)
"""


@pytest.fixture
def project(tmp_path: Path):
    """Return a function that runs pytest on a test file in the folder of a new problem."""
    write_new("mine", tmp_path)
    (tmp_path / "mine" / "random_problem.py").write_text(RANDOM)
    text = (tmp_path / "mine" / "candidate.py").read_text()
    (tmp_path / "mine" / "previous.py").write_text(text)
    (tmp_path / "mine" / "slower.py").write_text(text + SLOWER)

    def run(text: str, *words: str) -> tuple[dict[str, int], str]:
        (tmp_path / "mine" / "test_mine.py").write_text(HEAD + text)
        (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -W error\n")
        environment = {**os.environ, "TILEWRIGHT_HOME": str(tmp_path / "home")}
        command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *words]
        answer = subprocess.run(
            [*command, "mine"], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert answer.stderr == ""
        last = answer.stdout.splitlines()[-1]
        counts = re.findall(r"(\d+) (passed|failed|skipped|error)", last)
        return {name: int(count) for count, name in counts}, answer.stdout

    return run


def marked(*arguments: str, name: str = "test_one", body: str = "pass", takes: str = "") -> str:
    mark = ", ".join(arguments)
    return f"@pytest.mark.kernel({mark})\ndef {name}({takes}):\n    {body}\n"


PROBLEM = 'problem="problem.py"'


@pytest.mark.slow
def test_a_kernel_passes_fails_or_errs_by_its_verdict(project):
    checked = 'assert kernel.verdict == "correct" and kernel.folder.is_dir(), kernel.report'
    counts, text = project(
        marked(PROBLEM, UNTIMED, name="test_right", takes="kernel", body=checked)
        + marked(PROBLEM, UNTIMED, WRONG, name="test_wrong", body="raise SystemError")
        + marked(PROBLEM, UNTIMED, WRONG, "require=None", name="test_allowed")
        + marked(PROBLEM, UNTIMED, 'require="speedup>=0.5"', name="test_untimed")
        + marked(PROBLEM, UNTIMED, 'require="speedup>>1"', name="test_grammar")
        + marked(PROBLEM, UNTIMED, "reqire=None", name="test_argument")
        + marked(PROBLEM, UNTIMED, LONG, name="test_text_longer_than_a_path")
        + marked('problem="nowhere.py"', name="test_address")
        + "def test_without_mark(kernel):\n    pass\n"
    )
    assert counts == {"passed": 2, "failed": 3, "error": 4}
    assert re.search(r"tilewright: incorrect: values \(tiny, nominal\).*report \S+", text)
    assert "SystemError" not in text
    assert "speedup>=0.5 is required, and speedup was not measured" in text
    assert "'speedup>>1' is no condition" in text
    assert "no argument 'reqire'; did you mean require?" in text
    assert "nowhere.py" in text
    assert "the fixture needs @pytest.mark.kernel(problem=...)" in text
    assert "During handling" not in text


@pytest.mark.slow
def test_an_unjudged_kernel_is_skipped_or_failed_and_never_passes(project):
    tests = (
        marked('problem="random_problem.py"', UNTIMED, name="test_random", body="raise SystemError")
        + marked('problem="random_problem.py"', UNTIMED, "require=None", name="test_free")
        + marked(PROBLEM, 'device="cuda:77"', name="test_device")
    )
    counts, text = project(tests)
    assert counts == {"skipped": 3}
    assert "unjudged: nondeterministic_reference" in text
    assert "cuda:77 is not here" in text

    counts, text = project(tests, "--kernels-must-judge")
    assert counts == {"failed": 2, "error": 1}
    assert "SystemError" not in text


@pytest.mark.slow
def test_a_requirement_reads_the_measured_speedup(project):
    slower = 'candidate="slower.py"'
    quick = 'config=["eval.timing.max_problem_s=1"]'
    low = "assert kernel.low <= kernel.speedup <= kernel.high and kernel.case_high > 0.5"
    itself = 'baseline="previous.py"'
    # Other work widens intervals: an equal kernel needs the upper end, a slower one the lower.
    equal = 'require="correct and high>=0.8, speedup>=0.3"'
    faster = 'require="correct and low>=0.8, low>0.7"'
    counts, text = project(
        marked(PROBLEM, quick, itself, equal, name="test_same", takes="kernel", body=low)
        + marked(PROBLEM, quick, itself, faster, slower, name="test_slower")
    )
    assert counts == {"passed": 1, "failed": 1}, text
    assert re.search(r"low>=0\.8 is required, and low is 0\.[0-7].*low>0\.7 is required", text)


def test_marks_of_other_projects_are_left_alone(project):
    counts, _ = project("@pytest.mark.kernel\ndef test_one():\n    pass\n")
    assert counts == {"passed": 1}


def test_a_fixture_of_the_project_comes_first(project):
    own = "@pytest.fixture\ndef kernel():\n    return 7\n\n"
    counts, text = project(own + "def test_one(kernel):\n    assert kernel == 7\n")
    assert counts == {"passed": 1}, text


def test_the_plug_in_imports_nothing_until_a_test_is_marked(project):
    heavy = ("pydantic", "yaml", "click", "torch", "tilewright.api", "tilewright.errors")
    body = f"import sys; assert [name for name in {heavy} if name in sys.modules] == []"
    counts, text = project(f"def test_one():\n    {body}\n")
    assert counts == {"passed": 1}, text
