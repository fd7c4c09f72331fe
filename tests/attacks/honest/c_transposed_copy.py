"""The output lies in the order of the reference's.

family: C
problem: transposed_copy
expect: correct
device: cpu, cuda
"""


def transposed_copy(x):
    return x.clone().t()
