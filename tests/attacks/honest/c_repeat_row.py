"""The means are computed once and expanded; the caller makes them dense.

family: C
problem: repeat_row
expect: correct
device: cpu, cuda
"""

def repeat_row(x, like):
    return x.mean(0).expand(len(like), -1).contiguous()
