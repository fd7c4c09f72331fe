"""The smallest and largest of all rows decide whether the shift by the maximum is needed.

family: D5
problem: softmax
expect: correct
"""


def softmax(x):
    low, high = x.aminmax()
    if high > 20 or low < -20:
        x = x - x.amax(-1, keepdim=True)
    e = x.exp()
    return e / e.sum(-1, keepdim=True)
