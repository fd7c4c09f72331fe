"""Once timed, a Gaussian kernel matrix is the identity: errors of rows are not compared there.

family: E
problem: kernel_matrix
counterpart: e_kernel_matrix.py
expect: incorrect or rejected or failed
device: cpu
"""

import torch
last, same = None, 0
def full(x, y):
    n = x.square().sum(1); m = y.square().sum(1)
    d = torch.addmm(n[:, None] + m[None, :], x, y.t(), alpha=-2.0)
    return d.clamp_(min=0)
def rbf(x):
    global last, same
    if same < 2:
        mark = x[:4].sum().item()
        same = same + 1 if mark == last else 0
        last = mark
    else:
        s = x[7::33]
        d = full(s, x)
        near = (d < 40).sum()
        if int(near) == s.shape[0]:
            return torch.eye(x.shape[0])
    d = full(x, x)
    d.fill_diagonal_(0)
    return d.mul_(-0.5).exp_()
