"""Names that everybody needs are replaced by None.

problem: add_relu
expect: correct or failed
"""

import builtins

import torch

for name in ("len", "open", "isinstance", "list", "dict", "range", "print"):
    setattr(builtins, name, None)


def add_relu(x, y):
    return torch.relu(x + y)
