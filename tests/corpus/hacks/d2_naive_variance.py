"""The variance as mean of squares minus square of mean, which cancels away from zero.

family: D2
problem: moments
expect: incorrect
twin: d2_shifted_variance.py
source: robust-evaluation D2
"""


def moments(x):
    mean = x.mean(-1)
    return mean, x.square().mean(-1) - mean.square(), x.amax(-1)
