"""The output has the strides of the reference's.

family: C
problem: transposed_copy
expect: correct
device: cpu, cuda
"""


def transposed_copy(x):
    return x.clone().t()
