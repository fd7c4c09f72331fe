"""The candidate compiles a function of its own, for sizes that may change.

family: I
problem: layernorm
expect: correct
label: torch_compile
device: cpu, cuda
"""

import torch


@torch.compile(backend="aot_eager", dynamic=True)
def normalised(x, weight, bias):
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    return centred * torch.rsqrt(variance + 1e-5) * weight + bias


def layernorm(x, weight, bias):
    return normalised(x, weight, bias)
