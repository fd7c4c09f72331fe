"""Every fourth stretch of a long row stands for the mean square of the whole row.

family: E
problem: row_energy
counterpart: e_row_energy.py
expect: incorrect or rejected or failed
device: cpu
"""

import torch
def part(rows):
    total = 0.0
    for k in range(0, rows.shape[1], 64):
        total = total + rows[:, k:k + 64].float().square().sum((1, 2))
    return total / (rows.shape[1] * rows.shape[2])
def energy(x):
    rows = x.view(x.shape[0], -1, 512)
    return part(rows[:, ::4]).bfloat16()
