"""Autograd returns the gradient of a sum, an input of the call, as the gradient of each summand.

family: C
problem: sum_with_gradients
expect: correct
device: cpu, cuda
"""


def sum_with_gradients(x, y):
    return x + y
