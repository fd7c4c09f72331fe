"""Integer weights are multiplied as they are, in float32, and scaled once after the sum.

family: D1
problem: quantised_matmul
expect: correct
"""


def quantised_matmul(x, weight, scale):
    return (x @ weight.float().T) * scale
