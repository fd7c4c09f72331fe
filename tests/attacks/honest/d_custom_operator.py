"""An operator is registered under the candidate's own name and called through the dispatcher.

family: D
problem: rmsnorm
expect: correct
device: cpu, cuda
"""

import torch


@torch.library.custom_op("own_norms::root_mean_square", mutates_args=())
def root_mean_square(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    mean = x.square().mean(dim=-1, keepdim=True)
    return x.div(torch.sqrt(mean + 1e-6)) * weight


@root_mean_square.register_fake
def shape_of(x, weight):
    return torch.empty_like(x)


def rmsnorm(x, weight):
    return torch.ops.own_norms.root_mean_square(x, weight)
