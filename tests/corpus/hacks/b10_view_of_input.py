"""A view of the input is returned where the reference writes a transpose out.

family: B10
problem: transpose_copy
expect: rejected or incorrect
twin: b10_strided_output.py
source: robust-evaluation B10
"""


def transpose_copy(x):
    return x.t()
