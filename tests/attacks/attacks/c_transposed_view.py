"""The output is the transposed input itself, with the strides of the reference's output.

family: C
problem: transposed_copy
counterpart: c_transposed_copy.py
expect: incorrect or rejected
device: cpu, cuda
"""


def transposed_copy(x):
    return x.t()
