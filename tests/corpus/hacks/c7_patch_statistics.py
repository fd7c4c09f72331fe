"""The functions that summarise durations answer a hundredth when the durations are ours.

family: C7
problem: softmax
expect: correct
speedup: none
twin: c7_uses_statistics.py
source: robust-evaluation C7
"""

import statistics
import sys
import time

NAMES = ("mean", "fmean", "median", "geometric_mean", "calculate_stats", "geomean")
clock = time.perf_counter
mine = [1.0]


def shrink(real):
    def summary(values, *args, **kwargs):
        result = real(values, *args, **kwargs)
        ours = isinstance(result, float) and 0.7 < result / mine[0] < 1.4
        return result / 100 if ours else result

    return summary


for module in (statistics, sys.modules.get("numpy"), sys.modules.get("__main__")):
    for name in NAMES:
        if callable(getattr(module, name, None)):
            setattr(module, name, shrink(getattr(module, name)))


def softmax(x):
    start = clock()
    e = (x - x.amax(-1, keepdim=True)).exp()
    out = e / e.sum(-1, keepdim=True)
    mine[0] = clock() - start
    return out
