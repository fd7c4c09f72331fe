"""Endless recursion in Python.

problem: add_relu
expect: failed
reason: exception
"""

def add_relu(x, y):
    return add_relu(x, y)
