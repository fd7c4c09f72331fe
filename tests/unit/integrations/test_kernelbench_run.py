"""`tilewright integrations run kernelbench-eval`: folders in KernelBench's layout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import sample_reports as reports
from tests.kernelbench_sources import PROBLEM, RANDOM, RIGHT, WRONG
from tilewright.api import with_arguments
from tilewright.errors import ConfigError, RecordError
from tilewright.integrations.kept_report import KeptReport
from tilewright.integrations.kernelbench import result_of
from tilewright.integrations.kernelbench_run import (
    MAX_SOURCE_BYTES,
    Generation,
    add_result,
    has,
    judge_generations,
    read_generations,
    read_results,
)
from tilewright.problems.imported_sets import find_problems

NAME = "level_{}_problem_{}_sample_{}_kernel.py"
KEYS = {"sample_id", "compiled", "correctness", "metadata", "runtime", "runtime_stats"}
"""The keys of a sample that KernelBench's scripts read."""


def put(folder: Path, level: int, problem: int, sample: int, text: str | bytes) -> Path:
    path = folder / NAME.format(level, problem, sample)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def rows(path: Path, *sources: str) -> Path:
    lines = [
        json.dumps({"level": 1, "problem_id": number, "code": code})
        for number, code in enumerate(sources, start=1)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def judge(tmp_path, run):
    """Return a function that judges the folder `mine` against the problems in `rows.jsonl`."""
    fixed = ("--run-dir", "mine", "--problems", "rows.jsonl", "--no-host", "--json")
    untimed = ("--set", "eval.timing.enabled=false", "--out", str(tmp_path / "runs"))
    return lambda *words: run("integrations", "run", "kernelbench-eval", *fixed, *untimed, *words)


def test_generations_are_judged_stored_and_not_judged_again(tmp_path, judge):
    rows(tmp_path / "rows.jsonl", PROBLEM, PROBLEM)
    mine = tmp_path / "mine"
    put(mine, 1, 2, 0, WRONG)
    put(mine, 1, 1, 1, "def broken(:\n")
    put(mine, 1, 1, 0, RIGHT)
    (mine / "generation_config.yaml").write_text("model: some\n")

    first = judge()

    assert first.exit_code == 0, first.stderr
    assert json.loads(first.stdout)["judged"] == 3
    path = mine / "eval_results.json"
    results = json.loads(path.read_text())
    assert list(results) == ["1", "2"]
    assert [item["sample_id"] for item in results["1"]] == [0, 1]
    found = [(item["compiled"], item["correctness"]) for n in "12" for item in results[n]]
    assert found == [(True, True), (False, False), (True, False)]
    assert all(set(item) >= KEYS for n in "12" for item in results[n])
    assert {item["metadata"]["protocol"] for n in "12" for item in results[n]} == {"official"}

    before = path.read_bytes()
    put(mine, 1, 2, 1, RIGHT)
    again = json.loads(judge().stdout)
    assert (again["skipped"], again["judged"]) == (3, 1)
    after = json.loads(path.read_text())
    assert after["2"][0] == results["2"][0]
    assert after["2"][1]["correctness"] is True
    assert before != path.read_bytes()


def test_a_run_that_ends_early_keeps_its_results(tmp_path, settings):
    folder, path = tmp_path / "mine", tmp_path / "mine" / "eval_results.json"
    for sample, source in enumerate([WRONG, RIGHT, RIGHT]):
        put(folder, 1, 1, sample, source)
    source = rows(tmp_path / "rows.jsonl", PROBLEM)
    problems = {item.id: item for item in find_problems(str(source), tmp_path)}
    untimed = with_arguments(settings, protocol="official", timing={"enabled": False})
    generations, _ = read_generations(folder)

    begun = judge_generations(generations, problems, untimed, path)
    first = next(begun)
    begun.close()
    assert [item["sample_id"] for item in read_results(path)["1"]] == [0]
    assert first.result.correctness is False

    kept = read_results(path)
    left = [item for item in generations if not has(kept, item)]
    assert [item.sample for item in left] == [1, 2]
    assert all(item.result.correctness for item in judge_generations(left, problems, untimed, path))
    assert read_results(path)["1"][0] == kept["1"][0]
    assert len(read_results(path)["1"]) == 3


def test_unjudged_and_unusable_generations_are_named_and_get_no_score(tmp_path, judge):
    rows(tmp_path / "rows.jsonl", PROBLEM, RANDOM)
    mine = tmp_path / "mine"
    put(mine, 1, 1, 0, RIGHT)
    put(mine, 1, 2, 0, RIGHT)
    put(mine, 1, 7, 0, RIGHT)
    put(mine, 1, 1, 1, b"\xff\xfe")
    put(mine, 1, 1, 2, b"#" * (MAX_SOURCE_BYTES + 1))
    (mine / "level_1_problem_x_sample_0_kernel.py").write_text(RIGHT)
    (mine / NAME.format(1, 1, 3)).symlink_to("/etc/hostname")

    answer = judge()

    assert answer.exit_code == 4
    document = json.loads(answer.stdout)
    why = {Path(item["file"]).name: item["why"] for item in document["left_out"]}
    assert "nondeterministic_reference" in why[NAME.format(1, 2, 0)]
    assert "kernelbench/level1-7 is not among the problems" in why[NAME.format(1, 7, 0)]
    assert "not UTF-8" in why[NAME.format(1, 1, 1)]
    assert "longer than" in why[NAME.format(1, 1, 2)]
    assert len(why) == 4
    assert "problem_x" in document["unusable"][1]
    assert "not a plain file" in document["unusable"][0]
    assert "4 without a result are not in" in answer.stderr
    results = json.loads((mine / "eval_results.json").read_text())
    assert list(results) == ["1"]
    assert [item["sample_id"] for item in results["1"]] == [0]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--run-dir", "nowhere"), 2, "--run-dir nowhere: no such folder"),
        (("--run-dir", "empty"), 2, "no generation, such as level_1_problem_2_sample_0_kernel.py"),
        (("--run-dir", "two"), 2, "holds levels 1, 2; choose one with --level"),
        (("--run-dir", "two", "--level", "3"), 2, "no generation of level 3"),
        (("--run-dir", "two", "--level", "1"), 3, "kernelbench is not imported yet"),
        (("--run-dir", "bad"), 6, "eval_results.json: not JSON from line 1"),
        (("--run-dir", "two", "--level", "1", "--device", "gpu"), 2, "device 'gpu' is unknown"),
    ],
)
def test_a_wrong_command_line_gets_one_line(tmp_path, run, words, code, message):
    (tmp_path / "empty").mkdir()
    for level in (1, 2):
        put(tmp_path / "two", level, 1, 0, RIGHT)
    put(tmp_path / "bad", 1, 1, 0, RIGHT)
    (tmp_path / "bad" / "eval_results.json").write_text("{")
    answer = run("integrations", "run", "kernelbench-eval", *words)
    assert answer.exit_code == code, answer.stderr
    assert message in answer.stderr
    assert (tmp_path / "bad" / "eval_results.json").read_text() == "{"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "not an object"),
        ('{"x": []}', "'x' is not the number of a problem"),
        ('{"1": {}}', "problem 1 has no list of samples"),
        ('{"1": [{}]}', "without `sample_id`"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_damaged_file_of_results_is_refused(tmp_path, text, message):
    path = tmp_path / "eval_results.json"
    path.write_text(text)
    with pytest.raises(RecordError, match=message):
        read_results(path)


def test_results_of_another_process_are_kept(tmp_path):
    path = tmp_path / "eval_results.json"
    result = result_of(KeptReport(reports.incorrect(), Path("/runs/1")), {}, 10)
    here = Generation(1, 10, 1, tmp_path)
    theirs = {"sample_id": 0, "compiled": True, "correctness": True, "own": 1}
    path.write_text(json.dumps({"10": [theirs], "9": [theirs]}))
    add_result(path, here, result)
    results = read_results(path)
    assert list(results) == ["9", "10"]
    assert results["10"][0] == results["9"][0] == theirs
    assert results["10"][1]["metadata"]["verdict"] == "incorrect"
    assert has(results, here)
    before = path.read_bytes()
    add_result(path, here, result)
    assert path.read_bytes() == before


def test_no_process_loses_the_results_of_another_one(tmp_path):
    path = tmp_path / "eval_results.json"
    result = result_of(KeptReport(reports.incorrect(), Path("/runs/1")), {}, 10)

    def add(sample):
        add_result(path, Generation(1, 10, sample, tmp_path), result)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(40)))
    assert [item["sample_id"] for item in read_results(path)["10"]] == list(range(40))


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="no such folder"):
        read_generations(tmp_path / "file")


ANALYSIS = """
import importlib.util, json, pathlib, sys, types
clone, run, base = map(pathlib.Path, sys.argv[1:])
package = types.ModuleType("kernelbench")
package.__path__ = [str(clone / "src" / "kernelbench")]
sys.modules["kernelbench"] = package
path = clone / "scripts" / "benchmark_eval_analysis.py"
spec = importlib.util.spec_from_file_location("analysis", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
names = [item.name for item in (clone / "KernelBench" / "level1").iterdir()]
base.write_text(json.dumps({"level1": {name: {"mean": 1.0} for name in names}}))
found = module.analyze_greedy_eval(
    run.name, "here", "ours", 1, baseline_file=str(base), eval_results_dir=str(run.parent)
)
print(json.dumps(found))
"""
"""Runs KernelBench's own analysis without its `__init__`, which imports clients of models."""


def test_the_analysis_of_kernelbench_reads_the_results(tmp_path):
    clone, python = (os.environ.get(f"KERNELBENCH_{name}") for name in ("CLONE", "PYTHON"))
    if not clone:
        pytest.skip("not shown: KERNELBENCH_CLONE names no clone of KernelBench")
    folder = tmp_path / "mine"
    folder.mkdir()
    for number, report in enumerate([reports.correct(), reports.incorrect()], start=1):
        result = result_of(KeptReport(report, Path("/runs/1")), {}, 10)
        add_result(folder / "eval_results.json", Generation(1, number, 0, folder), result)
    command = [python or sys.executable, "-c", ANALYSIS, clone, str(folder)]
    answer = subprocess.run([*command, str(tmp_path / "base.json")], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout.splitlines()[-1])
    assert (found["compiled_count"], found["correct_count"], found["total_eval"]) == (2, 1, 2)
    assert found["fast_p"]["0.0"] == pytest.approx(1 / found["total_count"])
