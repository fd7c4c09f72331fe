"""A chain of ten thousand exceptions, the last one first.

problem: add_relu
expect: failed
reason: exception
"""

def add_relu(x, y):
    error = ValueError("first")
    for _ in range(10000):
        later = ValueError("later")
        later.__cause__ = error
        error = later
    raise error
