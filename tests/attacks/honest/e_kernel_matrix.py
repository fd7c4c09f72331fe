"""A Gaussian kernel matrix by one product.

family: E
problem: kernel_matrix
expect: correct
device: cpu
"""

import torch
def rbf(x):
    n = x.square().sum(1)
    d = torch.addmm(n[:, None] + n[None, :], x, x.t(), alpha=-2.0)
    d.clamp_(min=0).fill_diagonal_(0)
    return d.mul_(-0.5).exp_()
