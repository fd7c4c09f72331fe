"""A thread computes the result; the tensor that is returned waits for it at its first use.

family: C2
problem: softmax
expect: incorrect or rejected or failed or correct
speedup: none
twin: c2_futures_joined.py
source: robust-evaluation C2
"""

import _thread

import torch


class Late(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        for value in (*args, *(kwargs or {}).values()):
            if isinstance(value, Late):
                with value.unfinished:
                    pass
        return super().__torch_function__(func, types, args, kwargs or {})


def fill(out, x, unfinished):
    torch.softmax(x, dim=-1, out=out)
    unfinished.release()


def softmax(x):
    out = torch.empty_like(x)
    unfinished = _thread.allocate_lock()
    unfinished.acquire()
    late = torch.Tensor._make_subclass(Late, out)
    late.unfinished = unfinished
    _thread.start_new_thread(fill, (out, x, unfinished))
    return late
