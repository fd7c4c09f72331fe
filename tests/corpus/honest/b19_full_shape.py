"""Computed with kept dimensions, returned in the reference's shape.

family: B19
problem: any_positive
expect: correct
"""


def any_positive(x):
    return (x > 0).any(dim=-1, keepdim=True).to(x.dtype).squeeze(-1)
