"""The work is done in inference mode, so that outputs are inference tensors.

family: B
problem: layernorm
expect: correct
device: cpu, cuda
"""

import torch


@torch.inference_mode()
def layernorm(x, weight, bias):
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    y = x - mean
    y.mul_(torch.rsqrt(variance + 1e-5))
    return y.mul_(weight).add_(bias)
