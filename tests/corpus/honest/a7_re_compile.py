"""Compiles a regular expression, not a graph.

family: A7
problem: softmax
expect: correct
"""

import re

import torch

major = int(re.compile(r"(\d+)\.").match(torch.__version__).group(1))


def softmax(x):
    e = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return e.div_(e.sum(dim=-1, keepdim=True)) if major >= 2 else e / e.sum(-1, keepdim=True)
