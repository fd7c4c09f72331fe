"""The number of threads is read to choose a block size, and left as it is.

family: D8
problem: softmax
expect: correct
"""

import torch


def softmax(x):
    rows = max(1, -(-x.shape[0] // torch.get_num_threads()))
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(rows)])
