"""exp without the shift: infinite for large inputs, and infinity over infinity is NaN.

family: B20
problem: softmax
expect: incorrect
twin: b20_shifted.py
source: robust-evaluation B20, D6
"""


def softmax(x):
    e = x.exp()
    return e.div_(e.sum(dim=-1, keepdim=True))
