"""The memory for the output is cleared, and one element of each row is set.

family: C
problem: one_hot_into
expect: correct
device: cpu, cuda
"""


def one_hot_into(labels, weights, output):
    output.zero_()
    output.scatter_(1, labels[:, None], weights[:, None])
