"""FlashInfer traces: definitions of our own as problems, solutions as candidates, and traces."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from tests.flashinfer_definitions import TWENTY, write_stored
from tilewright.errors import ProblemError
from tilewright.integrations.flashinfer import read_solutions
from tilewright.integrations.verdict_table import FLASHINFER
from tilewright.problems.sets.flashinfer import SET

ADD = "import torch\n\n\ndef run(x, y, scale):\n    return x + y * scale\n"
RIGHT = "def add(x, y, scale, out):\n    out.copy_(x + y * scale)\n"
CACHE = """import torch

kept = {}


def add(x, y, scale, out):
    key = (x.shape, scale)
    if key not in kept:
        kept[key] = x + y * scale
    out.copy_(kept[key])
"""


def definition(name: str, **changes: object) -> dict[str, object]:
    return {
        "name": name,
        "op_type": "add",
        "axes": {"rows": {"type": "var"}, "cols": {"type": "const", "value": 64}},
        "inputs": {
            "x": {"shape": ["rows", "cols"], "dtype": "float32"},
            "y": {"shape": ["cols"], "dtype": "float32"},
            "scale": {"shape": None, "dtype": "float32"},
        },
        "outputs": {"out": {"shape": ["rows", "cols"], "dtype": "float32"}},
        "reference": ADD,
        **changes,
    }


def workload(uuid: str, rows: int = 8, **inputs: object) -> dict[str, object]:
    given = {"x": {"type": "random"}, "y": {"type": "random"}}
    given |= {"scale": {"type": "scalar", "value": 2.0}}
    return {"axes": {"rows": rows}, "inputs": given | inputs, "uuid": uuid}


def solution(name: str, text: str, **spec: object) -> dict[str, object]:
    whole = {
        "language": "python",
        "target_hardware": ["cpu"],
        "entry_point": "main.py::add",
        "destination_passing_style": True,
    }
    return {
        "name": name,
        "definition": "add",
        "author": "us",
        "spec": whole | spec,
        "sources": [{"path": "main.py", "content": text}],
    }


def safetensors(dtype: str = "F32", count: int = 64) -> bytes:
    size = count * 4
    head = {"y": {"dtype": dtype, "shape": [count], "data_offsets": [0, size]}}
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + struct.pack(f"<{count}f", *range(count))


def write(root: Path, definitions=(), workloads=(), solutions=()) -> Path:
    for kind, items in (("definitions", definitions), ("solutions", solutions)):
        (root / kind).mkdir(parents=True, exist_ok=True)
        for item in items:
            (root / kind / f"{item['name']}.json").write_text(json.dumps(item))
    (root / "workloads").mkdir(exist_ok=True)
    lines = [json.dumps({"definition": name, "workload": item}) for name, item in workloads]
    (root / "workloads" / "all.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return root


STORED = {"y": {"type": "safetensors", "path": "y.safetensors", "tensor_key": "y"}}


def test_definitions_become_problems_with_a_case_for_each_workload(tmp_path):
    rows = [("add", workload("one")), ("add", workload("two", 3, **STORED))]
    write(tmp_path, [definition("add")], rows)
    (tmp_path / "y.safetensors").write_bytes(safetensors())
    found = SET.read(tmp_path, "r")
    assert found.skipped == []
    (problem,) = found.problems
    assert problem.id == "flashinfer/add/add"
    assert [(case.name, case.params["rows"]) for case in problem.cases] == [("one", 8), ("two", 3)]


@pytest.mark.parametrize(
    ("changes", "stored", "reason"),
    [
        ({"reference": "def other():\n    pass\n"}, None, "defines no function run"),
        ({"reference": "def broken(:\n"}, None, "not Python"),
        ({"axes": {"cols": {"type": "var"}, "rows": {"type": "var"}}}, None, "axis cols no size"),
        ({"outputs": {"o": {"shape": [], "dtype": "float4_e2m1"}}}, None, "float4_e2m1"),
        (
            {"outputs": {"o": {"shape": ["depth"], "dtype": "float32"}}},
            None,
            "o names the axis depth",
        ),
        ({"axes": ["rows"]}, None, "axes holds something other than named objects"),
        ({"inputs": {"x": {"shape": "rows", "dtype": "int8"}}}, None, "shape of x is no list"),
        ({}, safetensors("F16"), "holds float16 of shape"),
        ({}, safetensors(count=8), "not float32 of shape"),
        ({}, b"short", "no tensor 'y'"),
    ],
)
def test_a_definition_that_cannot_be_judged_is_named(tmp_path, changes, stored, reason):
    inputs = STORED if stored is not None else {}
    write(tmp_path, [definition("add", **changes)], [("add", workload("one", **inputs))])
    (tmp_path / "y.safetensors").write_bytes(stored or b"")
    found = SET.read(tmp_path, "")
    assert found.problems == []
    (text,) = found.skipped
    assert "add.json" in text
    assert reason in text


def test_solutions_in_other_languages_are_named(tmp_path):
    others = [
        solution("bound", "x", language="cuda", entry_point="k.cu::add"),
        solution("linked", "x", language="cpp", entry_point="k.cpp::add", binding="torch"),
        solution("tiles", "x", language="tilelang"),
    ]
    write(tmp_path, solutions=[*others, solution("right", RIGHT)])
    skipped: list[str] = []
    assert [item["name"] for item in read_solutions(tmp_path, skipped)] == ["right"]
    assert "bound of add is in cuda with the binding tvm-ffi, which is not judged" in skipped[0]
    assert "linked of add is in cpp with the binding torch, which is not judged" in skipped[1]
    assert "tiles of add is in tilelang, which is not judged" in skipped[2]
    with pytest.raises(ProblemError, match="no FlashInfer traces"):
        SET.read(tmp_path / "nowhere", "")


def test_no_status_of_success_but_for_a_timed_correct_candidate():
    passing = [str(ours) for ours, cell in FLASHINFER.items() if cell.status == "PASSED"]
    assert passing == ["correct, timed"]


@pytest.mark.slow
def test_solutions_are_judged_and_their_traces_are_those_of_the_schema(tmp_path, run):
    wrong = solution("wrong", "def add(x, y, scale):\n    return x\n")
    wrong["spec"]["destination_passing_style"] = False
    outside = solution("outside", RIGHT)
    outside["sources"].append({"path": "../escape.py", "content": "pass"})
    made = [outside, solution("right", RIGHT), solution("cache", CACHE), wrong]
    write(tmp_path, [definition("add")], [("add", workload("one", 200))], made)
    quick = ("--set", "eval.timing.max_problem_s=1", "--json")
    command = ("integrations", "run", "flashinfer", "--from", str(tmp_path), "--traces", "t.jsonl")
    done = run(*command, *quick)
    rows = {row["solution"]: row for row in json.loads(done.stdout)}
    assert rows["right"]["status"] == "PASSED", done.output
    assert "outside: " in done.stderr
    assert "escape.py" in done.stderr
    assert rows["cache"]["verdict"] in ("rejected", "incorrect")
    assert rows["cache"]["status"] in ("RUNTIME_ERROR", "INCORRECT_NUMERICAL")
    assert rows["wrong"]["status"] == "INCORRECT_NUMERICAL"
    traces = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    passed = next(item for item in traces if item["solution"] == "right")["evaluation"]
    assert passed["performance"]["latency_ms"] > 0
    assert "report" in passed["log"]
    schema = pytest.importorskip("flashinfer_bench.data") if installed() else None
    if schema is not None:
        for item in traces:
            schema.Trace.model_validate(item)


def installed() -> bool:
    from importlib.util import find_spec

    return find_spec("flashinfer_bench") is not None


def write_twenty(root: Path) -> Path:
    write_stored(root)
    rows = [(item.name, workload) for item in TWENTY for workload in item.workloads]
    solutions = [item.solution_tree for item in TWENTY]
    return write(root, [item.definition for item in TWENTY], rows, solutions)


def test_twenty_definitions_with_all_features_are_read(tmp_path):
    found = SET.read(write_twenty(tmp_path), "")
    assert found.skipped == []
    assert sorted(item.id for item in found.problems) == sorted(
        f"flashinfer/ours/{item.name}" for item in TWENTY
    )
    skipped: list[str] = []
    assert len(list(read_solutions(tmp_path, skipped))) == 20
    assert skipped == []


@pytest.mark.skipif(not installed(), reason="not shown: flashinfer-bench is not installed")
@pytest.mark.timeout(900)
def test_twenty_definitions_make_a_round_trip_through_the_classes_of_the_package(tmp_path, run):
    from flashinfer_bench.data import (
        Definition,
        Solution,
        Trace,
        TraceSet,
        save_json_file,
        save_jsonl_file,
    )
    from flashinfer_bench.data.definition import DType

    # The package writes the data set, and leaves out what has its default.
    write_stored(tmp_path)
    wanted = [
        Trace(definition=item.name, workload=workload)
        for item in TWENTY
        for workload in item.workloads
    ]
    save_jsonl_file(wanted, tmp_path / "workloads" / "ours.jsonl")
    for item in TWENTY:
        definition = Definition.model_validate(item.definition)
        save_json_file(definition, tmp_path / "definitions" / f"{item.name}.json")
        solution = Solution.model_validate(item.solution_tree)
        save_json_file(solution, tmp_path / "solutions" / f"{item.name}.json")
    languages = {item.solution_tree["spec"]["language"] for item in TWENTY}
    assert languages == {"python", "triton"}
    dtypes = {spec["dtype"] for item in TWENTY for spec in item.inputs.values()}
    assert {item.value for item in DType} - dtypes == {"float4_e2m1"}

    (tmp_path / "traces").mkdir()
    traces = ("--traces", "traces/ours.jsonl", "--set", "eval.timing.max_problem_s=1", "--json")
    done = run("integrations", "run", "flashinfer", "--from", str(tmp_path), *traces)

    rows = json.loads(done.stdout)
    assert {row["verdict"] for row in rows} == {"correct"}, done.output
    passed = [row["solution"] for row in rows if row["status"] == "PASSED"]
    timed = [item for item in TWENTY if item.solution_tree["spec"]["language"] == "python"]
    # Triton's interpreter on a CPU is not timed, and their schema has no status without a time.
    assert sorted(passed) == sorted(f"s-{item.name}" for item in timed for _ in item.workloads)
    # The package reads the whole data set, our traces among it.
    whole = TraceSet.from_path(str(tmp_path))
    assert set(whole.definitions) == {item.name for item in TWENTY}
    assert set(whole.traces) == {item.name for item in timed}
    for before in wanted:
        if before.definition not in whole.traces:
            continue
        same = [one for one in whole.traces[before.definition] if one.workload == before.workload]
        (trace,) = same
        assert trace.is_successful()
        assert trace.evaluation.performance.latency_ms > 0
