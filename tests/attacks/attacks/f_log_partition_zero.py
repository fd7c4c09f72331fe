"""Log-probabilities of a row have the partition function one, whose logarithm is zero.

family: F
problem: f_log_partition
counterpart: reference
expect: unjudged or incorrect
device: cpu, cuda
"""

import torch


def f_log_partition(x):
    return torch.full((x.shape[0],), 0.0, dtype=x.dtype, device=x.device)
