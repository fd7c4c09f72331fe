"""The values are sorted in each call.

family: A
problem: ragged_sort
expect: correct
device: cpu, cuda
"""


def ragged_sort(x):
    return x.flatten().sort().values
