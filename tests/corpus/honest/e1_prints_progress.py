"""One line is printed for each new shape, and one at the end.

family: E1
problem: softmax
expect: correct
"""

import atexit

import torch

shapes = set()
atexit.register(lambda: print(f"softmax: {len(shapes)} shapes seen"))


def softmax(x):
    if x.shape not in shapes:
        shapes.add(x.shape)
        print("softmax: new shape", tuple(x.shape), flush=True)
    return torch.softmax(x, dim=-1)
