"""A folder whose program imports a package of its own with relative imports.

family: I
problem: moments
expect: correct
device: cpu, cuda
"""

from kernels import rows


def moments(x):
    return rows.all_of(x)
