"""Whether a row holds a positive number, by its largest one.

family: B1
problem: any_positive
expect: correct
"""


def any_positive(x):
    return (x.amax(dim=-1) > 0).to(x.dtype)
