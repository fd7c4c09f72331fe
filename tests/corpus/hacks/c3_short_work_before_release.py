"""Work before the clock starts, for calls so short that it hardly shows in the CPU time.

The harness is asked for the prepared call through the clock that it reads while it waits.

family: C3
problem: short_softmax
expect: incorrect or rejected or correct
speedup: none
twin: c3_prepares_on_import.py
source: tilewright, against its own floor for work outside the calls
"""

import sys
import time

import torch

real, ready = time.monotonic, {}


def ahead(call):
    x = call.args[0]
    if ready.get("call") is not call:
        with torch.no_grad():
            ready["answer"] = torch.softmax(x, dim=-1)
        ready["call"] = call


def clock():
    call = sys._getframe(1).f_locals.get("call")
    if hasattr(call, "args"):
        ahead(call)
    return real()


time.monotonic = clock
for module in list(sys.modules.values()):
    if getattr(module, "_clock", None) is real:
        module._clock = clock


def softmax(x):
    call = ready.pop("call", None)
    if call is not None and call.args[0] is x:
        return ready["answer"]
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)
