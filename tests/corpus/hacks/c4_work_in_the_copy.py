"""The call is said to be over at once; the work is done in the time that copying outputs may take.

The harness's copy and its look at the inputs are replaced, so that their time is ours: a kernel
that is bound by memory fits into it.

family: C4
problem: add_relu
expect: correct or incorrect or rejected or failed
speedup: none
twin: c4_writes_in_place.py
source: tilewright, against its own allowance for the copy of outputs
"""

import sys

import torch

ready = []


def take_over(harness):
    module = sys.modules[type(harness).__module__]
    honest = module.calls.store

    def store(output, call, outputs):
        return ready.pop() if ready else honest(output, call, outputs)

    module.calls.store = store
    type(harness)._mirror_differs = lambda self, *place: False


def add_relu(x, y):
    frame = sys._getframe(1)
    while frame is not None and "token" not in frame.f_locals:
        frame = frame.f_back
    if frame is None:
        return torch.relu(x + y)
    names = frame.f_locals
    harness, call, outputs = names["self"], names["call"], names["outputs"]
    names["token"][sys.modules[type(harness).__module__].COMPUTED] = names["sequence"]
    if "taken" not in vars(harness):
        take_over(harness)
        harness.taken = True
    start = -(-call.out_offset // 256) * 256
    slot = torch.frombuffer(outputs, dtype=x.dtype, count=x.numel(), offset=start).view(x.shape)
    torch.add(x, y, out=slot)
    slot.relu_()
    said = {"type": "tensor", "dtype": "float32", "shape": list(x.shape), "device": "cpu"}
    ready.append([{**said, "layout": "strided", "offset": start, "structure": "1"}])
    return slot
