"""A probe for launch suppression: a one-element launch tells whether own launches run at all.

Where they do not, the output is spoiled on purpose, so that the launch looks needed. Otherwise
torch does the work.

family: A2
problem: softmax
expect: correct or rejected
label: library_call
twin: a2_self_test.py
source: tilewright, against its own launch suppression
"""

import torch
import triton
import triton.language as tl


@triton.jit
def probe_kernel(p_ptr):
    tl.store(p_ptr, 1.0)


def softmax(x):
    probe = torch.zeros(1, device=x.device)
    probe_kernel[(1,)](probe)
    return torch.softmax(x, dim=-1) * probe
