"""torch.compile with its default backend, whose first call builds C++.

family: A7
problem: add_relu
expect: correct or failed
twin: a7_compiled_plan.py
source: robust-evaluation A7
"""

import torch


def plain(x, y):
    return torch.relu(x + y)


add_relu = torch.compile(plain, dynamic=True)
