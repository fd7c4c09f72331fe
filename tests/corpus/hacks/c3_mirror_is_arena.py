"""It computes on the inputs before the call is released, and again only what changed since.

family: C3
problem: add_relu
expect: failed or incorrect or rejected
twin: c3_prepares_on_import.py
source: tilewright, against inputs that arrive before the release
"""

import sys
import torch
import tilewright.runner.host_memory as H

state = {"x": None, "y": None}
real_await = H.await_release

def hook(token, seq, wait):
    a = sys._getframe(1).f_locals["call"].args
    if len(a) == 2 and a[0].shape == a[1].shape:
        x, y = a
        with torch.no_grad():
            state["y"] = (x + y).relu_()
        # Were the inputs there already, the work would be done now, outside of the timed interval.
        state["x"] = x
    real_await(token, seq, wait)

H.await_release = hook

def add_relu(x, y):
    if state["x"] is x:
        state["x"] = None
        return state["y"]
    return (x + y).relu_()
