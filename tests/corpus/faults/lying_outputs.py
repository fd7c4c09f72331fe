"""The output is said to lie outside the slot.

problem: add_relu
expect: failed or incorrect
"""

import sys

import torch

calls = sys.modules.get("tilewright.contestant.calls")


def lie(output, call, outputs):
    item = {"type": "tensor", "dtype": "float32", "shape": list(output.shape), "device": "cpu"}
    return [{**item, "layout": "strided", "offset": 1 << 39, "structure": "1"}]


if calls is not None:
    calls.store = lie


def add_relu(x, y):
    return torch.relu(x + y)
