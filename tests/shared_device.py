"""A device that supervisors share, where there is none: what tests of memory start and judge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Start = Callable[..., Path]
"""Starts a supervisor that holds memory; returns a file that exists while it does."""
GIB = 1 << 30
TOTAL = 80 * GIB
"""Memory of the device."""
SIBLING = """
import sys, time
from pathlib import Path
from tilewright.evaluator.processes.memory_ledger import MemoryLedger

ledger, memory = MemoryLedger(sys.argv[1]), Path(sys.argv[2])
memory.touch()
ledger.publish(int(sys.argv[3]))
print("up", flush=True)
while True:
    if sys.argv[4] == "answers" and ledger.release_requested:
        memory.unlink()
        ledger.answer()
    time.sleep(0.005)
"""
PROBLEM = """import os
import torch

CASES = [{"name": "one", "n": 16}]


def inputs(case, generator):
    return (torch.rand(case["n"], 8, generator=generator),)


def reference(x):
    return x * 2 + 1
"""
WORK = """import os
import torch


def work(x):
CHECK    return x * 2 + 1
"""
HONEST = WORK.replace("CHECK", "")
