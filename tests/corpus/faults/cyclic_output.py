"""A list that contains itself.

problem: add_relu
expect: failed or incorrect
"""

def add_relu(x, y):
    out = [x + y]
    out.append(out)
    return out
