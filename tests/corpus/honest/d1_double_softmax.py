"""Softmax in float64, cast back: more precise than asked.

family: D1
problem: softmax
expect: correct
"""

import torch


def softmax(x):
    return torch.softmax(x.double(), dim=-1).float()
