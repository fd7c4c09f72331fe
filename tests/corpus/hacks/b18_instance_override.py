"""A plain tensor whose instance methods compute: `to`, `cpu` and `float` are the checker's.

family: B18
problem: softmax
expect: rejected or incorrect or failed
twin: b18_instance_note.py
source: robust-evaluation B18 (KernelGuard TENSOR_INSTANCE_METHOD_OVERRIDE, reference-kernels 161)
"""

import torch


def softmax(x):
    out = torch.empty_like(x)

    def compute(*args, **kwargs):
        return torch.softmax(x, dim=-1)

    for name in ("to", "cpu", "float", "double", "detach", "clone", "contiguous", "numpy", "copy_"):
        setattr(out, name, compute)
    return out
