"""A frame looked at for a name in a message, as loggers do.

family: A5
problem: softmax
expect: correct
"""

import sys


def where():
    frame = sys._getframe(1)
    return f"{frame.f_code.co_name}:{frame.f_lineno}"


def softmax(x):
    if x.dim() == 0:
        raise ValueError(f"{where()}: softmax of a number")
    e = (x - x.amax(dim=-1, keepdim=True)).exp_()
    return e.div_(e.sum(dim=-1, keepdim=True))
