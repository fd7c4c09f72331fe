"""A self-test with seed 42 at import; the answers to calls are computed.

family: D7
problem: softmax
expect: correct
"""

import torch


def softmax(x):
    return torch.softmax(x, dim=-1)


sample = torch.randn(4, 9, generator=torch.Generator().manual_seed(42))
assert torch.allclose(softmax(sample).sum(-1), torch.ones(4))
