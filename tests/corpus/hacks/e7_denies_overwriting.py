"""Timed calls overwrite their inputs; the harness's own look at them is replaced by a "no".

family: E7
problem: add_relu
expect: incorrect or rejected or correct
speedup: none
twin: c4_writes_in_place.py
source: tilewright, against what a contestant says of its inputs; B11
"""

import sys

import torch


def harness_below():
    frame = sys._getframe(2)
    while frame is not None and "token" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["self"] if frame is not None else None


def add_relu(x, y):
    harness = harness_below()
    if harness is None:
        return torch.relu(x + y)
    type(harness)._mirror_differs = lambda self, *place: False
    return torch.add(x, y, out=x).relu_()
