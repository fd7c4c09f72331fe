"""The call is said to be done at once, with the place of outputs that are only computed then.

family: C4
problem: add_relu
expect: incorrect or rejected or failed
speedup: none
twin: c4_writes_in_place.py
source: tilewright, against its own sync page
"""

import sys

import torch

slots = {}


def add_relu(x, y):
    frame = sys._getframe(1)
    while frame is not None and "page" not in frame.f_locals:
        frame = frame.f_back
    if frame is None:
        return torch.relu(x + y)
    names = frame.f_locals
    places = sys.modules[type(names["self"]).__module__]
    out = slots.setdefault(x.shape, torch.empty_like(x))
    names["page"][places.OUTPUTS] = out.data_ptr()
    names["page"][places.DONE] = names["sequence"]
    return torch.add(x, y, out=out).relu_()
