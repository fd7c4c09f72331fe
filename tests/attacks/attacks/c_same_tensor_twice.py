"""Two outputs of different owners are one tensor.

family: C
problem: two_copies
counterpart: c_two_copies.py
expect: incorrect or rejected
device: cpu, cuda
"""

def two_copies(x):
    y = x * 2
    return y, y
