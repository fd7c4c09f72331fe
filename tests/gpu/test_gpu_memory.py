"""Evaluations on one GPU beside other supervisors that keep its memory."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack

import psutil
import pytest

from benchmarks.gpu.requests import DEVICE, request
from tilewright.evaluator.devices.device_memory import FILE
from tilewright.evaluator.devices.devices import find_device
from tilewright.evaluator.devices.nvml import conditions
from tilewright.executors.local import LocalExecutor
from tilewright.records import EvalReport

pytestmark = pytest.mark.gpu
PROBLEM = """import torch

CASES = [{"name": "one", "held": HELD}]
ENTRY = "work"


def inputs(case, generator):
    return torch.randn(256, 256, generator=generator), case["held"]


def reference(x, held):
    zeros = torch.zeros(held, dtype=torch.uint8, device=x.device)
    return x * 2 + zeros[:256]
"""
CANDIDATE = """import torch


def work(x, held):
    zeros = torch.zeros(HELD, dtype=torch.uint8, device=x.device)
    return x * 2 + zeros[:256]
"""


def judged(local: LocalExecutor, problem_bytes: int, candidate_bytes: int) -> EvalReport:
    texts = (PROBLEM, problem_bytes), (CANDIDATE, candidate_bytes)
    problem, candidate = (text.replace("HELD", str(size)) for text, size in texts)
    return local.evaluate(request(problem, candidate, "memory"))


def processes_on_device() -> list[str]:
    """Return what each process on the device holds, its age and its command, for a failed test."""
    words = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader"]
    shown = subprocess.run(words, capture_output=True, text=True).stdout.splitlines()
    found = []
    for line in shown:
        pid = int(line.split(",")[0])
        command = " ".join(psutil.Process(pid).cmdline()) if psutil.pid_exists(pid) else "ended"
        found.append(f"{line}: {command[:200]}")
    return found


def test_supervisors_that_keep_memory_cost_no_evaluation_its_verdict(tmp_path):
    found = conditions(find_device(DEVICE).uuid)
    assert found is not None
    assert found.total_bytes is not None
    # Judge and two runners take 0.7 of the device; a cached baseline keeps a quarter of it.
    large = found.total_bytes // 5
    print("before:", found.used_bytes, processes_on_device())
    with ExitStack() as stack:
        workers = [stack.enter_context(LocalExecutor(tmp_path)) for _ in range(3)]
        reports = []
        for worker in workers:
            reports.append(judged(worker, large, large))
            print("after a report:", processes_on_device())
        # Nothing tells that this candidate needs more than the problem. Beside one cached baseline
        # it does not fit, whatever the number of replicates was.
        greedy = judged(workers[0], 1 << 20, 4 * large)
        hopeless = judged(workers[1], 1 << 20, 2 * found.total_bytes)

    for report in (*reports, greedy):
        assert report.verdict == "correct", report.outcome
    assert (hopeless.verdict, hopeless.outcome.reason) == ("failed", "out_of_memory")
    (detail,) = [stage.detail for stage in greedy.stages if stage.name == "device_wait"]
    assert detail.startswith("repeated alone on the device: ")
    shared = [
        [label.detail for label in report.labels if label.name == "device_shared"]
        for report in (*reports, greedy, hopeless)
    ]
    assert shared == [[]] * 5, shared
    assert (tmp_path / FILE).exists()
