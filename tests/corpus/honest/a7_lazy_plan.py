"""An attribute of torch looked up under an assembled name, because versions spell it differently.

family: A7
problem: softmax
expect: correct
"""

import torch

function = None


def softmax(x):
    global function
    if function is None:
        names = ["soft" + "max", "_softmax"]
        function = next(getattr(torch, name) for name in names if hasattr(torch, name))
    return function(x, dim=-1)
