"""A constant that is right for all rows of the large case: the problem is weak there.

family: B1
problem: any_positive
expect: incorrect
twin: b1_any_positive_computed.py
source: robust-evaluation B1 (METR, KernelBench v0.1)
"""


def any_positive(x):
    return x.new_ones(x.shape[:-1])
