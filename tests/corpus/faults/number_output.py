"""A number instead of a tensor.

problem: add_relu
expect: incorrect
"""

def add_relu(x, y):
    return float((x + y).sum())
