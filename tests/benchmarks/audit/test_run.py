"""A run names what is missing, goes on where it ended, and judges with the strict judge."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.audit.again import measure_again
from benchmarks.audit.cells import all_cells
from benchmarks.audit.compilation import pack_kernels
from benchmarks.audit.installed import find
from benchmarks.audit.judging import Prepared, judged, request_of
from benchmarks.audit.libraries.base import Call, Library
from benchmarks.audit.results import Results, merge, read
from benchmarks.audit.run import Place, Plan, chosen, of_shard, run
from benchmarks.audit.summary import again_cells, result_of, table
from tilewright.executors.local import LocalExecutor

SUM = Call("row_sum", "import tiny_kernels", "return tiny_kernels.row_sum(x)")
TINY = Library("tiny-kernels", "1.0", "tiny_kernels", (SUM,), language="torch")
SOURCE = "def row_sum(x):\n    return x.sum(-1)\n"
SETTINGS = ("eval.timing.enabled=false",)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    made = tmp_path / "packages"
    information = made / "tiny_kernels-1.0.dist-info"
    information.mkdir(parents=True)
    text = "Metadata-Version: 2.1\nName: tiny-kernels\nVersion: 1.0\n"
    (information / "METADATA").write_text(text)
    (made / "tiny_kernels.py").write_text(SOURCE)
    for path in (tmp_path, made):
        path.chmod(0o755)
    return str(made)


def plan(folder: str, *libraries: Library, **more: object) -> Plan:
    fields = {"stages": ("judge",), "device": "cpu", "workers": 1, "settings": SETTINGS}
    return Plan(libraries=libraries, folders=(folder,), **{**fields, **more})


def test_a_library_is_found_by_version_and_needs(folder):
    assert find(TINY, [folder]).reason == ""
    assert "is not installed" in find(TINY, []).reason
    newer = Library("tiny-kernels", "2.0", "tiny_kernels", ())
    assert "the adapter is for 2.0" in find(newer, [folder]).reason
    needy = Library("tiny-kernels", "1.0", "tiny_kernels", (), needs=("no_such_module",))
    assert "no_such_module" in find(needy, [folder]).reason


def test_shards_divide_the_problems_that_are_left(folder, tmp_path):
    cells, results = all_cells(), Results(tmp_path / "audit.jsonl")
    results.add({"kind": "cell", "cell": cells[0].id})
    parts = [
        {cell.id for cell in of_shard(cells, plan(folder, shard=(number, 4)), results)}
        for number in range(4)
    ]
    left = {cell.id for cell in cells[1:]}
    assert left <= set.union(*parts)
    assert sum(map(len, parts)) == len(set.union(*parts))
    problems = {cell.id: cell.problem_id for cell in cells}
    shared = [{problems[name] for name in part} for part in parts]
    assert sum(map(len, shared)) == len(set.union(*shared))


def test_merged_slices_keep_each_row_once(tmp_path):
    first, second = ({"kind": "cell", "cell": name} for name in ("a", "b"))
    paths = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for path, rows in zip(paths, ([first], [first, second]), strict=True):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert merge(paths, tmp_path / "all.jsonl") == [first, second] == read(tmp_path / "all.jsonl")


def test_the_others_go_on_without_a_missing_library(folder, tmp_path, capsys):
    results = Results(tmp_path / "audit.jsonl")
    cells = chosen(plan(folder, Library("absent", "1.0", "absent", (SUM,)), TINY), results)
    assert {cell.library.name for cell in cells} == {"tiny-kernels"}
    assert "absent is not installed" in capsys.readouterr().out
    assert [row["library"] for row in results.rows] == ["absent", "tiny-kernels"]


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    path = tmp_path / "audit.jsonl"
    path.write_text('{"kind":"cell","cell":"one","verdict":"correct"}\n{"kind":"cell","ce')
    results = Results(path)
    results.add({"kind": "cell", "cell": "two", "verdict": "failed"})
    assert [row["cell"] for row in read(path)] == ["one", "two"]


def test_a_cell_that_is_judged_anew_loses_its_result(tmp_path):
    path = tmp_path / "audit.jsonl"
    rows = [{"kind": "cell", "cell": name, "verdict": "correct"} for name in ("one", "two")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    results = Results(path)
    results.drop("cell", ["one"])
    assert results.known("cell") == {"two"}
    assert read(path) == results.rows == rows[1:]
    with pytest.raises(ValueError, match="there is no cell three"):
        results.drop("cell", ["three"])


def test_a_slice_goes_on_with_the_file_of_the_last_one(tmp_path):
    earlier = tmp_path / "earlier.jsonl"
    earlier.write_text('{"kind":"cell","cell":"one","verdict":"correct"}\n')
    results = Results(tmp_path / "out" / "audit.jsonl", earlier)
    assert results.known("cell") == {"one"}
    assert results.path.read_text() == earlier.read_text()


@pytest.mark.slow
def test_cells_are_judged_once_and_again(folder, tmp_path, capsys):
    results = Results(tmp_path / "audit.jsonl")
    place = Place(tmp_path / "work", tmp_path / "home")
    # As after a slice that ended early.
    results.add({"kind": "cell", "cell": "tiny-kernels/row_sum-bf16", "verdict": "correct"})
    assert run(plan(folder, TINY), results, place)
    rows = {row["cell"]: row for row in read(results.path) if row["kind"] == "cell"}
    assert len(rows) == len([row for row in results.rows if row["kind"] == "cell"]) == 2
    judged = rows["tiny-kernels/row_sum-fp32"]
    assert (judged["verdict"], result_of(judged)) == ("correct", "correct, not timed")
    assert run(plan(folder, TINY), results, place)
    assert "0 of them left" in capsys.readouterr().out
    timed = {**judged, "against": {"eager": [1.0, 0.9, 1.1]}}
    results.add(timed)
    assert measure_again(plan(folder, TINY), results, place, 7)
    assert "seed 7: tiny-kernels/row_sum-fp32" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.nightly
def test_a_baseline_that_fails_leaves_eager_torch(folder, tmp_path):
    """`test_cells_are_judged_once_and_again` judges cells against eager torch alone."""
    [cell] = [cell for cell in all_cells([TINY]) if cell.dtype == "fp32"]
    # The file of the compiled reference is missing, so the baseline cannot be loaded.
    settings = ("eval.timing.min_blocks=4", "eval.timing.max_blocks=4")
    request = request_of(cell, Prepared(compiled=tmp_path), [folder], "cpu", settings)
    assert [one.name for one in request.baselines] == ["eager", "compile"]
    with LocalExecutor(tmp_path / "home") as local:
        found = judged(local, request)
    assert (found["verdict"], list(found["against"])) == ("correct", ["eager"])
    assert "compile" in found["compile_error"]


def test_no_cell_begins_without_time(folder, tmp_path):
    results = Results(tmp_path / "audit.jsonl")
    assert not run(plan(folder, TINY, seconds=1.0), results, Place(tmp_path, tmp_path))
    assert not results.known("cell")


def test_the_seed_chooses_the_same_cells():
    timed = {"kind": "cell", "verdict": "correct", "against": {"eager": [1.0, 0.9, 1.1]}}
    rows = [{**timed, "cell": f"library/{number}"} for number in range(30)]
    assert again_cells(rows, 5) == again_cells(list(reversed(rows)), 5)
    assert len(again_cells(rows, 5)) == 10
    assert again_cells(rows, 5) != again_cells(rows, 6)


def test_packed_kernels_name_the_folder_of_the_sandbox(tmp_path):
    kernels = tmp_path / "caches" / "triton" / "key"
    kernels.mkdir(parents=True)
    path = kernels / "__grp__softmax.json"
    path.write_text(json.dumps({"child_paths": {"a.cubin": str(kernels / "a.cubin")}}))
    assert pack_kernels(tmp_path / "caches", tmp_path / "kernels")
    assert json.loads(path.read_text())["child_paths"]["a.cubin"] == "/tmp/triton/key/a.cubin"
    assert not pack_kernels(tmp_path / "nothing", tmp_path / "kernels")


def test_a_process_without_device_takes_no_kernels(tmp_path):
    (tmp_path / "caches" / "triton").mkdir(parents=True)
    pack_kernels(tmp_path / "caches", tmp_path / "kernels")
    command = [sys.executable, "-c", "import audit_kernels"]
    variables = {"PYTHONPATH": str(tmp_path / "kernels"), "CUDA_VISIBLE_DEVICES": ""}
    answer = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert "everything is compiled already" in answer.stderr


def test_the_table_counts_and_compares_with_do_bench():
    rows = read(Path(__file__).with_name("results.jsonl"))
    text = table(rows)
    assert "liger-kernel | 2 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 1" in text
    assert "do_bench: 1 of 2 cases above 50 us agree within 3 %" in text
    assert "measured again: 1 of 1 agree" in text
