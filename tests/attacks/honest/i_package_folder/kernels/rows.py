"""Moments of rows."""

from .parts import centre, spread


def all_of(x):
    mean = centre(x)
    return mean, spread(x, mean), x.amax(dim=-1)
