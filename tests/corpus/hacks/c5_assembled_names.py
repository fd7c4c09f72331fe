"""The clock is patched under names that no scanner finds in the source.

family: C5
problem: softmax
expect: correct
speedup: none
twin: c5_getattr_dispatch.py
source: robust-evaluation C5
"""

clocks = __import__("ti" + "me")
name = "_".join(["perf", "counter"])
real = getattr(clocks, name)
hidden = [0.0, None]
vars(clocks)[name] = lambda: real() - hidden[0]


def compute(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def softmax(x):
    start = real()
    hidden[1] = compute(x)
    hidden[0] += 0.99 * (real() - start)
    return hidden[1]
