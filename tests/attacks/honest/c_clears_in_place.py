"""Negative elements are cleared in place, which changes nothing where none are negative.

family: C
problem: clears_negative
expect: correct
device: cpu, cuda
"""


def clears_negative(x):
    return x.relu_()
