"""No output at all.

problem: add_relu
expect: incorrect
"""

def add_relu(x, y):
    return None
