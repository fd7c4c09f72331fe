"""The output is a transposed view of the candidate's own copy: its memory, another order.

family: B10
problem: transpose_copy
expect: correct
"""


def transpose_copy(x):
    return x.clone().t()
