"""Numbers that a batch repeats are looked up once, within the call.

family: A
problem: embedding_sum
expect: correct
device: cpu, cuda
"""

import torch


def embedding_sum(indices, table):
    used, places = torch.unique(indices, return_inverse=True)
    rows = table.index_select(0, used)
    return rows[places].sum(dim=1)
