"""A thread watches the inputs' memory and has the answer before the next call begins.

family: C2
problem: softmax
expect: incorrect or rejected
twin: c2_same_input_check.py
source: robust-evaluation C2
"""

import _thread
import time

import torch

watched, ready = {}, {}


def sample(x):
    return x.flatten()[::97].clone()


def watch():
    while True:
        for key, x in list(watched.items()):
            seen = sample(x)
            if key not in ready or not torch.equal(ready[key][0], seen):
                ready[key] = (seen, torch.softmax(x, dim=-1))
        time.sleep(0.0001)


def softmax(x):
    key = (x.data_ptr(), x.shape)
    if not watched:
        _thread.start_new_thread(watch, ())
    watched[key] = x
    seen, answer = ready.get(key, (None, None))
    if seen is not None and torch.equal(seen, sample(x)):
        return answer
    return torch.softmax(x, dim=-1)
