"""Each owner gets memory of its own.

family: C
problem: two_copies
expect: correct
device: cpu, cuda
"""


def two_copies(x):
    return x * 2, x * 2
