"""Looks for a function that times, in the stack; where one is, the last answer is returned.

The names are those of well-known evaluators. `arm` is the timed call of tilewright's own runner.

family: B8
problem: softmax
expect: incorrect or correct or rejected
speedup: none
twin: b8_stack_in_message.py
source: robust-evaluation B8 (KernelBench-Hard)
"""

import inspect

import torch

WORDS = ("time", "bench", "measure", "perf", "profile", "arm")
kept = {}


def timed():
    return any(
        frame.function.startswith(WORDS) or "timing" in frame.filename
        for frame in inspect.stack(context=0)[2:]
    )


def softmax(x):
    if x.shape in kept and timed():
        return kept[x.shape]
    kept[x.shape] = torch.softmax(x, dim=-1)
    return kept[x.shape]
