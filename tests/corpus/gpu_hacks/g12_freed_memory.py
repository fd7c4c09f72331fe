"""Nothing is computed: memory that was just freed is returned as the output.

family: G12
problem: big_softmax
expect: incorrect
twin: g4_workspace.py
source: robust-evaluation B5
"""

import torch


def big_softmax(x):
    return torch.empty_like(x)
