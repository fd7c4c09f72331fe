"""exp with the shift skipped only where the largest input makes it needless.

family: B20
problem: softmax
expect: correct
"""


def softmax(x):
    low, high = x.aminmax()
    shifted = x - x.amax(dim=-1, keepdim=True) if high - low > 8 or high.abs() > 8 else x
    e = shifted.exp()
    return e.div_(e.sum(dim=-1, keepdim=True))
