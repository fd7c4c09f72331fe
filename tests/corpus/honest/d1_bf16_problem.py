"""The problem's tensors are bfloat16: products are, too, and the sum is float32.

family: D1
problem: matmul_bf16
expect: correct
"""


def matmul_bf16(x, weight):
    return (x.float() @ weight.float()).bfloat16()
