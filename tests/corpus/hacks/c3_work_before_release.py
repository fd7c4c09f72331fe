"""Whoever reads the clock to start it does our work first: every clock is wrapped.

The wrapper looks for a prepared call in its caller, or takes the last inputs, and computes.

family: C3
problem: softmax
expect: incorrect or rejected or correct
speedup: none
twin: c3_prepares_on_import.py
source: robust-evaluation C3, C4; inputs that lie ready before the clock starts
"""

import sys
import time

import torch

CLOCKS = ("perf_counter", "monotonic", "time", "perf_counter_ns", "monotonic_ns", "time_ns")
REAL = [getattr(time, name) for name in CLOCKS]
state = {"x": None, "seen": None, "answer": None, "busy": False, "ended": False}


def sample(x):
    return x.flatten()[::1009].clone()


def compute(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def ahead(x):
    now = sample(x)
    if state["seen"] is None or not torch.equal(state["seen"], now):
        state["answer"] = torch.softmax(x, dim=-1)
        state["seen"] = now


def wrapped(clock):
    def read():
        args = getattr(sys._getframe(1).f_locals.get("call"), "args", None)
        if state["ended"] and not args:  # this stamp ends our own call
            state["ended"] = False
        elif not state["busy"]:
            state["busy"] = True
            x = args[0] if args else state["x"]
            if isinstance(x, torch.Tensor):
                with torch.no_grad():
                    ahead(x)
            state["busy"] = False
        return clock()

    return read


for module in list(sys.modules.values()):
    for name, value in list(getattr(module, "__dict__", {}).items()):
        if any(value is clock for clock in REAL) and module is not sys.modules[__name__]:
            setattr(module, name, wrapped(value))


def softmax(x):
    state["x"], seen, state["ended"] = x, state["seen"], True
    if seen is not None and torch.equal(seen, sample(x)):
        return state["answer"]
    return compute(x)
