"""Twelve candidates through the interfaces that need no package, against the published table.

The table over stored reports is in tests/unit/integrations. Here each interface judges for itself.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpumode_tasks import YML, write_task
from tests.services.test_serve import Server, asked
from tests.twelve_candidates import SETTINGS, TWELVE, Kind
from tilewright.config import load
from tilewright.errors import NoVerdict, TilewrightError
from tilewright.integrations.flashinfer import status_of
from tilewright.integrations.kernelbench import eval_kernel_against_ref
from tilewright.integrations.popcorn import CLOCK
from tilewright.integrations.verdict_table import GPU_MODE, KERNELGYM, TABLE, Ours, row_of
from tilewright.problems.requests import build_request
from tilewright.records import EvalReport

pytest.importorskip("fastapi")
pytest.importorskip("sqlalchemy")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
EACH = pytest.mark.parametrize("kind", TWELVE, ids=lambda kind: kind.name)
CHOSEN = load(overrides=list(SETTINGS[:3]), environ={})


def rows_of(kind: Kind) -> tuple[Ours, ...]:
    """Return the rows that a candidate may have here: a worker with one core times nothing."""
    if len(os.sched_getaffinity(0)) > 1:
        return kind.rows
    untimed = {Ours.CORRECT_TIMED: Ours.CORRECT_NOT_TIMED}
    return tuple(untimed.get(row, row) for row in kind.rows)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    words = [word for setting in SETTINGS[:3] for word in ("--set", setting)]
    made = Server(tmp_path_factory.mktemp("twelve") / "home", *words)
    yield made
    made.stop()


@pytest.fixture
def run(tmp_path):
    """Return a function that runs the command line in a folder of its own."""
    environment = {**os.environ, "TILEWRIGHT_HOME": str(tmp_path / "home")}

    def made(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tilewright", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280
        )

    return made


@EACH
def test_http_answers_with_the_whole_report(server, kind: Kind, tmp_path):
    problem = tmp_path / f"{kind.name}.py"
    problem.write_text(kind.problem)
    request = build_request(kind.source, problem, CHOSEN).model_dump(mode="json")
    status, task = asked(f"{server.url}/v1/tasks", {"request": request})
    assert status == 202, task
    _, found = asked(f"{server.url}/v1/tasks/{task['key']}?wait_s=60")
    if kind.deadly:
        assert (found["state"], found["verdict"]) == ("failed", None)
        assert asked(f"{server.url}/v1/tasks/{task['key']}/report")[0] == 404
        return
    _, document = asked(f"{server.url}/v1/tasks/{task['key']}/report")
    report = EvalReport.model_validate(document)
    assert row_of(report) in rows_of(kind), report.outcome
    assert found["verdict"] == report.verdict
    assert (report.speedup is not None) == (row_of(report) is Ours.CORRECT_TIMED)


@EACH
def test_kernelgym_answers_with_the_cell(server, kind: Kind):
    task = {
        "task_id": kind.name,
        "reference_code": kind.module_problem,
        "kernel_code": kind.module_source,
        "backend": "cuda" if "load_inline" in kind.code else "torch",
        "entry_point": "Model",
        "num_correct_trials": 5,
        "num_perf_trials": 100,
        "timeout": 300,
        "priority": "normal",
    }
    status, found = asked(f"{server.url}/evaluate", task)
    assert status == 200, found
    names = ("status", "compiled", "correctness", "error_code")
    seen = tuple(found[name] for name in names)
    cells = [KERNELGYM[row] for row in rows_of(kind)]
    assert seen in [(c.status, c.compiled, c.correctness, c.code) for c in cells], found
    assert (found["speedup"] > 0) == any(cell.timed for cell in cells)


@pytest.mark.nightly
@EACH
def test_kernelbench_returns_the_cell(kind: Kind, tmp_path):
    """Shorter, over stored reports: tests/unit/integrations/test_kernelbench.py."""
    changes = [*SETTINGS[:3], f"home={tmp_path / 'home'}", f"runs={tmp_path / 'runs'}"]

    def judged():
        return eval_kernel_against_ref(
            *(kind.module_problem, kind.module_source),
            measure_performance=True,
            device="cpu",
            protocol="strict",
            config=load(overrides=changes, environ={}),
        )

    if kind.deadly:
        with pytest.raises(TilewrightError) as raised:
            judged()
        assert isinstance(raised.value, NoVerdict) or "judge" in str(raised.value)
        return
    result = judged()
    cells = [TABLE[row].kernelbench for row in rows_of(kind)]
    seen = (result.compiled, result.correctness, result.runtime > 0)
    assert seen in [(c.compiled, c.correctness, c.timed) for c in cells], result.metadata
    report = EvalReport.from_json(Path(result.metadata["report"]).read_bytes())
    assert row_of(report) in rows_of(kind), report.outcome


TASK_REFERENCE = """
import torch
from task import Pair
from utils import make_match_reference


def ref_kernel(data: Pair):
    x = data
    {first}
    return 8 * x


def generate_input(rows: int, seed: int):
    generator = torch.Generator(device="cuda")
    generator.manual_seed(seed)
    return torch.randn(rows, 1024, device="cuda", generator=generator)


check_implementation = make_match_reference(ref_kernel)
"""
QUICK = [word for setting in SETTINGS[:3] for word in ("--set", setting)]


@pytest.mark.nightly
@EACH
def test_popcorn_ends_as_the_cell_says(kind: Kind, tmp_path, run):
    """Shorter, over stored reports: tests/unit/integrations/test_popcorn.py."""
    first = "__import__('os')._exit(0)" if kind.deadly else "pass"
    yml = YML.replace('  - {"rows": 5, "scales": [1, 2], "seed": 2}\n', "")
    folder = write_task(tmp_path / "clone", yml=yml, reference=TASK_REFERENCE.format(first=first))
    submission = tmp_path / "submission.py"
    submission.write_text(kind.source.replace(kind.name, "custom_kernel"))
    command = ("integrations", "run", "popcorn", str(submission), "--task", str(folder))
    done = run(*command, "--mode", "benchmark", "--json", *QUICK)
    if kind.deadly:
        assert done.returncode not in (0, 1)
        return
    (row,) = json.loads(done.stdout)["runs"]
    report = EvalReport.from_json((Path(row["report"]) / "report.json").read_bytes())
    assert row_of(report) in rows_of(kind), report.outcome
    cell = GPU_MODE[row_of(report)]
    assert (done.returncode == 0) == cell.passes
    lines = "\n".join(json.loads(done.stdout)["lines"])
    assert ("Benchmarking successful" in lines) == cell.passes
    assert (CLOCK in lines) == (cell.shows == "durations")


@pytest.mark.nightly
def test_flashinfer_traces_have_the_statuses_of_the_cells(tmp_path, run):
    """Shorter, over stored reports: tests/unit/integrations/test_flashinfer.py."""
    for part in ("definitions", "solutions", "workloads"):
        (tmp_path / part).mkdir()
    spec = {"shape": ["rows", "cols"], "dtype": "float32"}
    axes = {"rows": {"type": "var"}, "cols": {"type": "const", "value": 1024}}
    for kind in TWELVE:
        first = "__import__('os')._exit(0)" if kind.deadly else "pass"
        reference = f"def run(x):\n    {first}\n    return 8 * x\n"
        parts = {"axes": axes, "inputs": {"x": spec}, "outputs": {"out": spec}}
        definition = {"name": kind.name, "op_type": "ours", "reference": reference, **parts}
        (tmp_path / "definitions" / f"{kind.name}.json").write_text(json.dumps(definition))
        solution = {
            "name": kind.name,
            "definition": kind.name,
            "author": "us",
            "spec": {
                "language": "python",
                "target_hardware": ["cpu"],
                "entry_point": f"main.py::{kind.name}",
                "destination_passing_style": False,
            },
            "sources": [{"path": "main.py", "content": kind.source}],
        }
        (tmp_path / "solutions" / f"{kind.name}.json").write_text(json.dumps(solution))
    workload = {"axes": {"rows": 256}, "inputs": {"x": {"type": "random"}}}
    lines = [
        json.dumps({"definition": kind.name, "workload": {**workload, "uuid": kind.name}})
        for kind in TWELVE
    ]
    (tmp_path / "workloads" / "all.jsonl").write_text("\n".join(lines))
    command = ("integrations", "run", "flashinfer", "--from", str(tmp_path), "--traces", "t.jsonl")
    done = run(*command, "--json", *QUICK)
    seen = {row["solution"]: row for row in json.loads(done.stdout)}
    for kind in TWELVE:
        if kind.deadly:
            assert seen[kind.name]["verdict"] == "unjudged"
            assert seen[kind.name]["status"] is None
            assert kind.name in done.stderr
            continue
        row = seen[kind.name]
        report = EvalReport.from_json((Path(row["report"]) / "report.json").read_bytes())
        assert row_of(report) in rows_of(kind), (kind.name, report.outcome)
        assert row["status"] == status_of(report)
        assert (row["status"] == "PASSED") == (row_of(report) is Ours.CORRECT_TIMED)


MARKED = """
@pytest.mark.kernel(problem="{name}.py", candidate="{name}_candidate.py", config={config})
def test_{name}(kernel):
    assert kernel.verdict == "correct" and kernel.low <= kernel.high
"""


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_pytest_ends_each_test_as_its_cell_says(tmp_path):
    """Shorter, with one kernel: tests/unit/integrations/test_pytest_plugin.py."""
    lines = ["import pytest\n"]
    for kind in TWELVE:
        (tmp_path / f"{kind.name}.py").write_text(kind.problem)
        (tmp_path / f"{kind.name}_candidate.py").write_text(kind.source)
        lines.append(MARKED.format(name=kind.name, config=list(SETTINGS[:3])))
    (tmp_path / "test_twelve.py").write_text("".join(lines))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    environment = {**os.environ, "TILEWRIGHT_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "pytest", "-v", "-rs", "-p", "no:cacheprovider", "."]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=560
    )
    seen = dict(re.findall(r"::test_(\w+) (PASSED|FAILED|SKIPPED|ERROR)", done.stdout))
    names = {"as required": "PASSED", "fails": "FAILED", "skipped": "SKIPPED"}
    for kind in TWELVE:
        allowed = {names[TABLE[row].pytest.ends] for row in rows_of(kind)}
        assert seen.get(kind.name) in allowed, (kind.name, done.stdout[-3000:])
