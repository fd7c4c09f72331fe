"""Scaled inputs."""
import torch
ENTRY = "mul"
CASES = [{"name": "main", "count": 90112}]
def inputs(case, generator):
    return (torch.randn(case["count"], generator=generator),)
def reference(x):
    return torch.sin(x)
