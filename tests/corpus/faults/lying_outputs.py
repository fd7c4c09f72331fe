"""The output is said to lie where nothing is.

problem: add_relu
expect: failed or incorrect
"""

import sys

import torch

calls = sys.modules.get("tilewright.runner.calls")


def lie(leaves, structure, call):
    output = leaves[0]
    item = {"type": "tensor", "dtype": "float32", "shape": list(output.shape), "device": "cpu"}
    return [{**item, "layout": "strided", "address": 1 << 39, "structure": "1"}]


if calls is not None:
    calls.describe = lie
    calls.addresses = lambda leaves: [1 << 39]


def add_relu(x, y):
    return torch.relu(x + y)
