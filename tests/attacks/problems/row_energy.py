"""Mean square of each of a few long rows of different sizes."""
import torch
ENTRY = "energy"
CASES = [{"name": "main", "rows": 8, "cols": 2097152}]
def inputs(case, generator):
    x = torch.randn(case["rows"], case["cols"], generator=generator)
    return ((x * (0.5 + torch.rand(case["rows"], 1, generator=generator))).bfloat16(),)
def reference(x):
    return x.float().square().mean(-1).bfloat16()
