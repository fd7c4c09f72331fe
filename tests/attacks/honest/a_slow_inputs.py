"""The values are sorted in each call.

family: A
problem: slow_inputs
expect: correct
device: cpu, cuda
"""


def slow_inputs(x):
    return x.flatten().sort().values
