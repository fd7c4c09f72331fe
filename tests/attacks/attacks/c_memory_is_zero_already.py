"""The memory for the output is not cleared, since the generator always hands over zeros.

family: C
problem: one_hot_into
counterpart: c_one_hot_into.py
expect: incorrect or rejected
device: cpu, cuda
"""


def one_hot_into(labels, weights, output):
    output.scatter_(1, labels[:, None], weights[:, None])
