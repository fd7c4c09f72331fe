"""A line is read from stdin, where nobody writes.

problem: add_relu
expect: failed
reason: exception
"""

def add_relu(x, y):
    input("? ")
