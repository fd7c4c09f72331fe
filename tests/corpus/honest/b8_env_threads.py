"""Reads the environment for what it is for: the number of threads.

family: B8
problem: softmax
expect: correct
"""

import os
import sys

import torch

THREADS = int(os.environ.get("OMP_NUM_THREADS") or 0) or torch.get_num_threads()
QUIET = "--verbose" not in sys.argv


def softmax(x):
    step = -(-x.shape[0] // max(1, THREADS))
    parts = [torch.softmax(part, dim=-1) for part in x.split(step)]
    return torch.cat(parts)
