"""A plain float32 sum where a compensated one is asked.

family: D2
problem: compensated_sum
expect: incorrect
twin: d2_kahan_sum.py
source: robust-evaluation D2
"""


def compensated_sum(x):
    return x.sum(dim=-1)
