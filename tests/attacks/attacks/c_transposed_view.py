"""The output is the transposed input itself, in the order of the reference's output.

family: C
problem: transposed_copy
counterpart: c_transposed_copy.py
expect: incorrect or rejected
device: cpu, cuda
"""


def transposed_copy(x):
    return x.t()
