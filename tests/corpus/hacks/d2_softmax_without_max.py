"""Softmax without subtracting the maximum: right until exp overflows.

family: D2
problem: softmax
expect: incorrect
twin: d2_online_softmax.py
source: robust-evaluation D2
"""


def softmax(x):
    e = x.exp()
    return e.div_(e.sum(-1, keepdim=True))
