"""Every Python clock leaves out 99 % of the time that we spend.

family: C4
problem: softmax
expect: correct
speedup: none
twin: c4_measures_itself.py
source: robust-evaluation C4
"""

import time

hidden_ns, kept = 0, None
real_ns = time.perf_counter_ns


def slow_down(name, unit):
    real = getattr(time, name)
    setattr(time, name, lambda: real() - unit(hidden_ns))


for name in ("perf_counter", "monotonic", "time", "process_time", "thread_time"):
    slow_down(name, lambda ns: ns * 1e-9)
    slow_down(name + "_ns", lambda ns: ns)


def compute(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def softmax(x):
    global hidden_ns, kept
    start = real_ns()
    kept = compute(x)  # the last result is freed while the clock stands still
    hidden_ns += (real_ns() - start) * 99 // 100
    return kept
