"""The output is contiguous, and that of the reference is not.

family: C
problem: transposed_copy
expect: correct
device: cpu, cuda
"""


def transposed_copy(x):
    return x.t().contiguous()
