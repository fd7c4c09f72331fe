"""torch.compile under an assembled name, wrapped when first called.

family: A7
problem: softmax
expect: correct
label: torch_compile
twin: a7_lazy_plan.py
source: robust-evaluation A7, E18
"""

import torch

wrapped = None


def plain(x):
    return torch.softmax(x, dim=-1)


def softmax(x):
    global wrapped
    if wrapped is None:
        wrap = getattr(torch, "".join(["com", "pile"]))
        wrapped = wrap(plain, dynamic=True, backend="aot_eager")
    return wrapped(x)
