"""A product in memory of the allocator.

family: C
problem: big_scale
expect: correct
device: cpu, cuda
"""

def big_scale(x, w):
    return x * w
