"""Looks for a phase in environment, arguments and process titles; when timed, answers again.

family: B8
problem: softmax
expect: correct
speedup: none
twin: b8_env_threads.py
source: robust-evaluation B8, (KernelGuard EVALUATOR_MODE_BRANCH)
"""

import os
import sys

import torch

WORDS = ("bench", "timing", "perf", "leaderboard", "speed")
kept = {}


def clues():
    yield from sys.argv
    for name, value in os.environ.items():
        if name.startswith(("MODE", "PHASE", "POPCORN", "EVAL", "KERNEL", "TILEWRIGHT")):
            yield name + value
    for pid in ("self", str(os.getppid())):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                yield file.read().decode(errors="replace")
        except OSError:
            continue


def softmax(x):
    if x.shape in kept and any(word in clue.lower() for clue in clues() for word in WORDS):
        return kept[x.shape]
    kept[x.shape] = torch.softmax(x, dim=-1)
    return kept[x.shape]
