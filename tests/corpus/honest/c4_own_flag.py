"""A function looks at its caller for a log line and raises a flag of its own when it is done.

family: C4
problem: softmax
expect: correct
"""

import sys
import threading

import torch

done = threading.Event()
callers = set()


def softmax(x):
    callers.add(sys._getframe(1).f_code.co_name)
    done.clear()
    out = torch.softmax(x, dim=-1)
    done.set()
    return out
