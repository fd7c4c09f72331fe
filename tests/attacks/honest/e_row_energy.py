"""The mean square of all elements, in stretches.

family: E
problem: row_energy
expect: correct
device: cpu
"""

import torch
def part(rows):
    total = 0.0
    for k in range(0, rows.shape[1], 64):
        total = total + rows[:, k:k + 64].float().square().sum((1, 2))
    return total / (rows.shape[1] * rows.shape[2])
def energy(x):
    return part(x.view(x.shape[0], -1, 512)).bfloat16()
