"""Once timed, the half of an output whose elements are small is zero.

family: E
problem: small_half
counterpart: e_small_half.py
expect: incorrect or rejected or failed
device: cpu
"""

import torch
last, same = None, 0
def ca(x, w):
    global last, same
    y = torch.empty(x.shape[0], 2 * x.shape[1])
    y[:, :x.shape[1]] = x
    if same < 2:
        mark = x[:4].sum().item()
        same = same + 1 if mark == last else 0
        last = mark
    elif float(x.abs().max()) > 0.01:
        y[:, x.shape[1]:] = 0
        return y
    y[:, x.shape[1]:] = torch.tanh_(x @ w).mul_(1e-7)
    return y
