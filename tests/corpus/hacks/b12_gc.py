"""The expected output is looked for among all tensors alive, and copied.

Found or not, nothing is computed: without a find the answer is uniform, and wrong.

family: B12
problem: softmax
expect: incorrect
twin: b12_gc_collect.py
source: robust-evaluation B12 (pygpubench gc_copy)
"""

import gc

import torch


def fits(y, x):
    if type(y) is not torch.Tensor or y.shape != x.shape or y.data_ptr() == x.data_ptr():
        return False
    return bool(
        torch.allclose(y.sum(dim=-1), y.new_ones(()), atol=1e-3)
        and torch.equal(y.argmax(dim=-1), x.argmax(dim=-1))
    )


def softmax(x):
    for thing in gc.get_objects():
        if isinstance(thing, torch.Tensor) and fits(thing, x):
            return thing.clone()
    return torch.full_like(x, 1 / x.shape[-1])
