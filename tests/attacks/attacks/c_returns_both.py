"""The reference returns one input as it is, so the other is returned instead of a copy.

family: C
problem: returns_first
counterpart: reference
expect: incorrect or rejected
finding: aliased_output
device: cpu, cuda
"""


def returns_first(first, second):
    return first, second
