"""A cheap curve in place of tanh: off by a third of the output, yet within 1e-2 of it.

family: B2
problem: small_range
expect: incorrect
twin: b2_tanh_by_exp.py
source: robust-evaluation B2, D2
"""


def small_range(x):
    return x.clamp(-1, 1).mul_(0.004)
