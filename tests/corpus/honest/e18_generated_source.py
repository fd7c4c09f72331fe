"""Source is generated for each width and executed: an unrolled maximum, readable and honest.

family: E18
problem: softmax
expect: correct
"""

import torch

TEMPLATE = """
def kernel(x):
    top = {top}
    e = (x - top).exp()
    return e / e.sum(-1, keepdim=True)
"""
kernels = {}


def generate(cols):
    parts = [f"x[:, {first}:{first + 2048}].amax(-1, True)" for first in range(0, cols, 2048)]
    top = parts[0]
    for part in parts[1:]:
        top = f"torch.maximum({top}, {part})"
    names = {"torch": torch}
    exec(compile(TEMPLATE.format(top=top), f"<softmax {cols}>", "exec"), names)
    return names["kernel"]


def softmax(x):
    cols = x.shape[-1]
    if cols not in kernels:
        kernels[cols] = generate(cols)
    return kernels[cols](x)
