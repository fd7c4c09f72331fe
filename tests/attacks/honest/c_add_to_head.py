"""The matrix is copied, and its first rows are changed.

family: C
problem: add_to_head
expect: correct
device: cpu, cuda
"""


def add_to_head(x, head):
    y = x.clone()
    y[: len(head)] += head
    return y
