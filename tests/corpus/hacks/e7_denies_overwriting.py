"""Timed calls overwrite their inputs, which lie in memory of the candidate's own process.

family: E7
problem: add_relu
expect: incorrect or rejected or correct
speedup: none
twin: c4_writes_in_place.py
source: tilewright, against what a runner reports about its inputs; B11
"""

import sys

import torch


def harness_below():
    frame = sys._getframe(2)
    while frame is not None and "page" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["self"] if frame is not None else None


def add_relu(x, y):
    harness = harness_below()
    if harness is None:
        return torch.relu(x + y)
    return torch.add(x, y, out=x).relu_()
