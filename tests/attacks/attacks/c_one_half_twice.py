"""The reference returns halves of one tensor, so one tensor is returned as both.

family: C
problem: halves_of_one
counterpart: reference
expect: incorrect or rejected
finding: misplaced_output
device: cpu, cuda
"""

import torch


def halves_of_one(x):
    table = torch.cos(x)
    return table, table
