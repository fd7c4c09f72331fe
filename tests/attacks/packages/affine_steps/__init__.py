"""A package of pure Python, as a candidate may depend on."""


def affine(x, scale, shift):
    """Return a scaled and shifted value."""
    return x * scale + shift
