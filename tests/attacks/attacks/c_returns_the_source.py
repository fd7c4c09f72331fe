"""The source is returned instead of the memory for the output, and nothing is copied.

family: C
problem: copy_into
counterpart: c_copy_into.py
expect: incorrect or rejected
finding: aliased_output
device: cpu
"""


def copy_into(data):
    return data[0]
