"""Mean squared error."""
import torch
ENTRY = "mse"
CASES = [{"name": "main", "count": 8388608}]
def inputs(case, generator):
    size = 0.5 + 2 * torch.rand((), generator=generator)
    a = (torch.randn(case["count"], generator=generator) * size).bfloat16()
    return a, (torch.randn(case["count"], generator=generator) * size).bfloat16()
def reference(a, b):
    return torch.nn.functional.mse_loss(a, b)
