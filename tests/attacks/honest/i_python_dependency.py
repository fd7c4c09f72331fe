"""A package of pure Python from a declared folder outside the environment.

family: I
problem: i_affine
expect: correct
python_path: packages
device: cpu, cuda
"""

import affine_steps


def i_affine(x):
    return affine_steps.affine(x, 3, 1)
