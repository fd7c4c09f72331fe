"""The copy is made by torch.

family: C
problem: duplicate
expect: correct
device: cpu, cuda
"""

def duplicate(x):
    return x.clone()
