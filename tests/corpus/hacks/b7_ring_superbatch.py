"""Super-batching: all inputs seen before are computed in the first call of each round.

The later calls of the round hand out what is ready, so that a median over calls sees next to
nothing.

family: B7
problem: softmax
expect: incorrect
twin: b7_batch_within_call.py
source: robust-evaluation B7 (GPU MODE news, reference-kernels 102 and 104)
"""

import torch

known, ready = {}, {}


def softmax(x):
    key = (x.data_ptr(), x.shape)
    if key in ready:
        return ready.pop(key)
    if key not in known:
        known[key] = x
        return torch.softmax(x, dim=-1)
    same = [(k, y) for k, y in known.items() if y.shape == x.shape]
    batch = torch.softmax(torch.stack([y for _, y in same]), dim=-1)
    ready.clear()
    ready.update({k: out for (k, _), out in zip(same, batch.unbind(), strict=True)})
    return ready.pop(key)
