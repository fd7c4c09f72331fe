"""The judge runs one configuration of an autotuned kernel, and the next if that cannot run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("triton")

PROGRAM = """
import json, os
os.environ["TRITON_INTERPRET"] = "1"
import torch, triton, triton.language as tl
from triton.runtime import autotuner, errors
from tilewright.evaluator.judge.autotuned_kernels import take_first_configuration
from tilewright.runner.launch_counter import install_driver_stub

install_driver_stub(80, "cpu")
take_first_configuration(autotuner.Autotuner)
take_first_configuration(autotuner.Autotuner)
tried = []


def note(arguments):
    tried.append((arguments["n"], arguments["BLOCK"]))
    if arguments["BLOCK"] == 64:
        raise errors.OutOfResources(1, 0, "shared memory")


def own_benchmark(call, quantiles):
    raise AssertionError("the author's benchmark")


configs = [triton.Config({"BLOCK": size}, pre_hook=note) for size in (64, 32, 16)]


@triton.autotune(configs=configs, key=["n"], do_bench=own_benchmark)
@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


right = []
for n in (100, 100, 50):
    x = torch.rand(n)
    y = torch.empty_like(x)
    double[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
    right.append(torch.equal(y, x * 2))
kept = double._tilewright_chosen
assert kept is None, kept
print(json.dumps([tried, right]))
"""


def test_the_first_configuration_that_runs_is_chosen():
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    tried, right = json.loads(done.stdout.splitlines()[-1])
    assert right == [True, True, True]
    # Tried, tried, called; called again; then another size.
    sizes = [[100, 64], [100, 32], [100, 32], [100, 32], [50, 64], [50, 32], [50, 32]]
    assert tried == sizes
