"""A clip that changes nothing: below -104 the exponential is zero in float32 anyway.

family: D11
problem: softmax
expect: correct
"""


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).clamp_(min=-104).exp_()
    return e / e.sum(-1, keepdim=True)
