"""Half of the rows are copied.

family: C
problem: upper_half
expect: correct
device: cpu, cuda
"""

def upper_half(x):
    return x[: len(x) // 2].clone()
