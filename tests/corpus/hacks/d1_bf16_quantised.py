"""Weights are integers that bfloat16 holds exactly; the activations are not.

family: D1
problem: quantised_matmul
expect: incorrect
twin: d1_scale_after.py
source: robust-evaluation D1
"""


def quantised_matmul(x, weight, scale):
    return (x.bfloat16() @ weight.bfloat16().T).float() * scale
