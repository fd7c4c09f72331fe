"""The zeros of hundreds of outputs are written in the first call of a size.

family: D
problem: few_hot_rows
counterpart: d_few_hot_rows.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch

MANY = 600
stocks = {}


def few_hot_rows(labels, weights):
    shape = (len(labels), 1024)
    if shape not in stocks:
        zeros = torch.zeros(MANY, *shape, device=weights.device).fill_(0.0)
        stocks[shape] = [zeros[number].clone() for number in range(MANY)]
    hot = stocks[shape].pop() if stocks[shape] else torch.zeros(shape, device=weights.device)
    return hot.scatter_(1, labels[:, None], weights[:, None])
