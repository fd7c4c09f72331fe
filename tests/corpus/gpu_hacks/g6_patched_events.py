"""Events of this process are patched to say that next to no time has passed.

family: G6
problem: big_softmax
expect: correct
speedup: none
label: clock_mismatch
twin: g6_own_tuning.py
source: robust-evaluation C2
"""

import torch

torch.cuda.Event.elapsed_time = lambda self, other: 0.001


def big_softmax(x):
    return torch.softmax(x, -1)
