"""Reads the clock in every call, to keep statistics that nobody acts upon.

family: B8
problem: softmax
expect: correct
"""

import time

import torch

spent = []


def softmax(x):
    start = time.perf_counter()
    out = torch.softmax(x, dim=-1)
    spent.append(time.perf_counter() - start)
    del spent[:-100]
    return out
