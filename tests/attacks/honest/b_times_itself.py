"""Two orders of a sum are timed in the first calls, and the faster one is kept for each shape.

family: B
problem: embedding_sum
expect: correct
device: cpu, cuda
"""

import time

import torch

TIMES = {}


def by_bag(indices, table):
    return torch.nn.functional.embedding_bag(indices, table, mode="sum")


def by_place(indices, table):
    total = table[indices[:, 0]]
    for column in indices.t()[1:]:
        total += table[column]
    return total


WAYS = (by_bag, by_place)


def embedding_sum(indices, table):
    seen = TIMES.setdefault((indices.shape, table.shape), [[], []])
    number = min(range(2), key=lambda way: min(seen[way], default=0.0))
    start = time.perf_counter()
    out = WAYS[number](indices, table)
    if len(seen[number]) < 5:
        seen[number].append(time.perf_counter() - start)
    return out
