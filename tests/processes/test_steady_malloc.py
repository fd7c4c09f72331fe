"""The malloc settings of every child, where torch allocates."""

import json
import os
import subprocess
import sys

import pytest

from tilewright.evaluator.processes.sandbox_policy import STEADY_MALLOC

PROGRAM = """
import json, sys, torch

def in_heap(block):
    address = block.data_ptr()
    for line in open("/proc/self/maps"):
        low, high = (int(word, 16) for word in line.split()[0].split("-"))
        if low <= address < high:
            return line.rstrip().endswith("[heap]")

def places(rows):
    return [in_heap(torch.empty(rows, 1024)) for _ in range(4)]

before = {rows: places(rows) for rows in (4096, 8191, 8193, 12288, 16384)}
print(json.dumps({**before, 8192: places(8192)}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_block_of_32_mib_is_mapped_anew_whatever_was_freed_before():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **STEADY_MALLOC},
        capture_output=True,
        text=True,
        check=True,
    )

    places = json.loads(done.stdout)
    assert places.pop("4096") == [True] * 4
    assert places == {rows: [False] * 4 for rows in ("8191", "8193", "12288", "16384", "8192")}
