"""The interpreter ends with status 0 while the candidate is imported.

family: E3
problem: softmax
expect: failed
twin: e3_catches_exit.py
source: robust-evaluation E3 (KernelBench-HIP trusted_entrypoint.py)
"""

import torch


def softmax(x):
    return torch.zeros_like(x)


raise SystemExit(0)
