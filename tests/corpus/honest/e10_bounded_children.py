"""Four children start at import, each makes one number, and all are waited for.

family: E10
problem: softmax
expect: correct
"""

import os

import torch

children = []
for number in range(4):
    child = os.fork()
    if child == 0:
        os._exit(16 * (number + 1))
    children.append(child)
SIZES = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def softmax(x):
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(SIZES[-1])])
