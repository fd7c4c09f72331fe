"""Later calls return what the first call of a shape computed; the reference draws anyway.

family: B
problem: dropout_rows
counterpart: b_dropout_rows.py
expect: incorrect
device: cpu, cuda
"""

import torch

kept = {}


def dropped(x):
    if x.shape not in kept:
        kept[x.shape] = torch.nn.functional.dropout(x / x.norm(dim=-1, keepdim=True), 0.5)
    return kept[x.shape].clone()
