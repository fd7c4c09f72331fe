"""The ReLU is applied in place, to inputs that nominally never need it.

family: D6
problem: matmul_relu_uniform
expect: correct
"""


def matmul_relu_uniform(x, weight):
    return (x @ weight).relu_()
