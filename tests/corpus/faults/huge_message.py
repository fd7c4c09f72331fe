"""An exception with a message of a hundred megabytes.

problem: add_relu
expect: failed
reason: exception
"""

def add_relu(x, y):
    raise ValueError('x' * (100 << 20))
