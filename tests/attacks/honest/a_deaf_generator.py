"""The values are sorted in each call.

family: A
problem: deaf_generator
expect: correct or unjudged
device: cpu, cuda
"""


def deaf_generator(x):
    return x.flatten().sort().values
