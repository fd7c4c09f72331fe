"""A thread computes the result under a lock, which the function takes before it returns.

family: C2
problem: softmax
expect: correct
"""

import _thread

import torch


def fill(out, x, unfinished):
    torch.softmax(x, dim=-1, out=out)
    unfinished.release()


def softmax(x):
    out = torch.empty_like(x)
    unfinished = _thread.allocate_lock()
    unfinished.acquire()
    _thread.start_new_thread(fill, (out, x, unfinished))
    with unfinished:
        return out
