"""One small shape is made to take no time at all, so that a geometric mean collapses.

family: C7
problem: softmax
expect: correct
speedup: none
twin: c7_small_shape_path.py
source: robust-evaluation C7
"""

import time

real = time.perf_counter
frozen = [None]


def clock():
    if frozen[0] is None:
        return real()
    stamp, frozen[0] = frozen[0], None
    return stamp


time.perf_counter = clock
last = [0.0]


def softmax(x):
    start = real()
    e = (x - x.amax(-1, keepdim=True)).exp()
    out = e / e.sum(-1, keepdim=True)
    if x.numel() < 64:
        frozen[0] = start - 1e-6  # the stamp after our call is the one before it
    last[0] = start
    return out
