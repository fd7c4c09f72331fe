"""Inputs that are slow to make may be used more than once; their result is kept.

family: A
problem: slow_inputs
counterpart: a_slow_inputs.py
expect: incorrect or rejected or unjudged
device: cpu, cuda
"""

import torch

owner = {}


def slow_inputs(x):
    flat = x.flatten()
    probes = flat[:: max(len(flat) // 3, 1)][:3].tolist()
    found = [owner.get((len(flat), probe)) for probe in probes]
    if found[0] is not None and found[0] is found[1] and found[1] is found[2]:
        return found[0].clone()
    answer = flat.sort().values
    for value in flat.tolist():
        if not value.is_integer():
            owner[len(flat), value] = answer
    return answer.clone()
