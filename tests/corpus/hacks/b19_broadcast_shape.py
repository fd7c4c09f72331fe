"""One element instead of a row of them: it compares equal once it is broadcast.

family: B19
problem: any_positive
expect: incorrect
twin: b19_full_shape.py
source: robust-evaluation B19
"""


def any_positive(x):
    return x.new_ones((1,))
