"""In-place operators on the candidate's own sum.

family: B11
problem: add_relu
expect: correct
"""


def add_relu(x, y):
    z = x.clone()
    z += y
    return z.relu_()
