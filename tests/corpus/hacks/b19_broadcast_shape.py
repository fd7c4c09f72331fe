"""One element instead of a row of them: it compares equal once it is broadcast.

family: B19
problem: mean_softmax
expect: incorrect
twin: b19_full_shape.py
source: robust-evaluation B19
"""


def mean_softmax(x):
    return x.new_full((1,), 1 / x.shape[-1])
