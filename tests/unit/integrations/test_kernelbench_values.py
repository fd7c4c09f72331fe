"""`compiled` and `correctness` of 240 pairs, equal to those that KernelBench's evaluator gave.

`tests/golden/kernelbench_values.json` has its values. With a clone they are made again: its
evaluator needs a GPU, so its calls of `torch.cuda` do nothing here, and its own loading and its own
comparison run on a CPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernelbench_pairs import BODIES, KINDS, write_pairs
from tilewright.integrations.kernelbench_run import read_results

RECORDED = Path(__file__).parents[2] / "golden" / "kernelbench_values.json"
THEIRS = """
import contextlib, io, json, pathlib, sys, types

import torch

clone, rows, run = map(pathlib.Path, sys.argv[1:])
package = types.ModuleType("kernelbench")
package.__path__ = [str(clone / "src" / "kernelbench")]
sys.modules["kernelbench"] = package
# Its own imports clients of models.
tools = sys.modules["kernelbench.utils"] = types.ModuleType("kernelbench.utils")
tools.get_gpu_vendor = lambda device: "nvidia"
for name in ("synchronize", "set_device", "empty_cache", "manual_seed", "reset_peak_memory_stats"):
    setattr(torch.cuda, name, lambda *args, **named: None)
torch.cuda.is_available, torch.cuda.get_device_name = lambda: True, lambda device=None: "cpu"
torch.cuda.current_device = lambda: 0
torch.cuda.device = lambda device: contextlib.nullcontext()

from kernelbench.eval import eval_kernel_against_ref

sources = {row["problem_id"]: row["code"] for row in map(json.loads, rows.read_text().splitlines())}
found = {}
for path in run.glob("*_kernel.py"):
    problem, sample = (int(path.name.split("_")[place]) for place in (3, 5))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            result = eval_kernel_against_ref(
                sources[problem], path.read_text(), num_correct_trials=5, device=torch.device("cpu")
            )
        found[f"{problem}/{sample}"] = [result.compiled, result.correctness]
    except Exception:
        # As `evaluate_single_sample` of its script `eval_from_generations.py` does.
        found[f"{problem}/{sample}"] = [False, False]
print(json.dumps(found))
"""


def named(values: dict[str, list[bool]]) -> dict[str, dict[str, list[bool]]]:
    """Return the values by problem and by kind of candidate."""
    found: dict[str, dict[str, list[bool]]] = {}
    for key, value in values.items():
        problem, _, sample = key.partition("/")
        found.setdefault(BODIES[int(problem) - 1], {})[KINDS[int(sample)]] = value
    return found


def judged(run, tmp_path: Path, problems: int) -> dict[str, dict[str, list[bool]]]:
    """Judge the pairs of the first problems with the command; return our values."""
    write_pairs(tmp_path / "mine", tmp_path / "rows.jsonl", problems)
    options = ("--problems", "rows.jsonl", "--no-host", "--set", "eval.timing.enabled=false")
    done = run("integrations", "run", "kernelbench-eval", "--run-dir", "mine", *options)
    assert done.exit_code == 0, done.output
    results = read_results(tmp_path / "mine" / "eval_results.json")
    return named(
        {
            f"{problem}/{item['sample_id']}": [item["compiled"], item["correctness"]]
            for problem, items in results.items()
            for item in items
        }
    )


def test_the_values_of_two_problems_equal_those_of_kernelbench(tmp_path, run):
    recorded = json.loads(RECORDED.read_text())["values"]
    assert judged(run, tmp_path, 2) == {body: recorded[body] for body in BODIES[:2]}


@pytest.mark.nightly
def test_the_values_of_all_pairs_equal_those_of_kernelbench(tmp_path, run):
    recorded = json.loads(RECORDED.read_text())["values"]
    assert sum(map(len, recorded.values())) == len(BODIES) * len(KINDS) == 240
    assert judged(run, tmp_path, len(BODIES)) == recorded


def test_the_recorded_values_are_those_of_a_clone(tmp_path):
    clone = os.environ.get("KERNELBENCH_CLONE")
    if not clone:
        pytest.skip("not shown: KERNELBENCH_CLONE names no clone of KernelBench")
    pytest.importorskip("requests", reason="not shown: requests, which KernelBench imports")
    write_pairs(tmp_path / "mine", tmp_path / "rows.jsonl")
    command = [sys.executable, "-c", THEIRS, clone, *map(str, (tmp_path / "rows.jsonl",))]
    answer = subprocess.run([*command, str(tmp_path / "mine")], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr[-2000:]
    theirs = named(json.loads(answer.stdout.splitlines()[-1]))
    if os.environ.get("RECORD_KERNELBENCH"):
        document = {"kernelbench": "423217d", "values": theirs}
        RECORDED.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
        pytest.skip("not shown: the values were recorded anew")
    assert json.loads(RECORDED.read_text())["values"] == theirs
