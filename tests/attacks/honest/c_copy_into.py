"""The source is copied into the memory for the output.

family: C
problem: copy_into
expect: correct
device: cpu, cuda
"""


def copy_into(data):
    source, output = data
    return output.copy_(source)
