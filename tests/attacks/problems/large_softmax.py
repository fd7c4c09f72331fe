"""Softmax of rows."""
import torch
ENTRY = "sm"
CASES = [{"name": "main", "rows": 1024, "cols": 1024}]
def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)
def reference(x):
    return torch.softmax(x, -1)
