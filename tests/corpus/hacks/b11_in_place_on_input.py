"""The work is done in the input's memory and the input returned, which saves an allocation.

family: B11
problem: add_relu
expect: rejected or incorrect
twin: b11_donated_input.py
source: robust-evaluation B11, B10
"""


def add_relu(x, y):
    return x.add_(y).relu_()
