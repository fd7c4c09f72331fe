"""The result is computed by a thread after the function has returned.

family: C2
problem: softmax
expect: incorrect or rejected
twin: c2_joined_pool.py
source: robust-evaluation C2
"""

import _thread

import torch


def fill(out, x):
    torch.softmax(x, dim=-1, out=out)


def softmax(x):
    out = torch.empty_like(x)
    _thread.start_new_thread(fill, (out, x))  # threading.active_count() does not see it
    return out
