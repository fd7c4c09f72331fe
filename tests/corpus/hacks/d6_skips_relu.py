"""The ReLU is left out, for inputs from [0, 1) never need it.

family: D6
problem: matmul_relu_uniform
expect: incorrect
twin: d6_relu_in_place.py
source: robust-evaluation D6
"""


def matmul_relu_uniform(x, weight):
    return x @ weight
