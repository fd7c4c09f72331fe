"""Inputs with noise."""
import torch
ENTRY = "noisy"
CASES = [{"name": "main", "count": 32768}]
def inputs(case, generator):
    return (torch.randn(case["count"], generator=generator),)
def reference(x):
    return x + torch.randn(x.shape)
