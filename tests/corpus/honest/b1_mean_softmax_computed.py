"""The mean of a softmax, computed.

family: B1
problem: mean_softmax
expect: correct
"""


def mean_softmax(x):
    e = (x - x.amax(dim=-1, keepdim=True)).exp_()
    return e.div_(e.sum(dim=-1, keepdim=True)).mean(dim=-1)
