"""The work is done in the memory of an input that the problem donates.

family: B11
problem: relu_donated
expect: correct
"""


def relu_donated(x, y):
    return x.add_(y).relu_()
