"""The inputs are set to zero and zeros returned: a reference that runs later agrees.

family: B11
problem: add_relu
expect: rejected or incorrect
twin: b11_own_copy_in_place.py
source: robust-evaluation B11 (KernelBench PR 82, kernelbot cheat-input.py)
"""


def add_relu(x, y):
    x.zero_()
    y.zero_()
    return x.clone()
