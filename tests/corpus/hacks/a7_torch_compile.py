"""torch.compile around the reference's mathematics, and nothing else.

With the default backend the same file needs half a minute of C++ builds on a cold CPU.

family: A7
problem: softmax
expect: correct
label: torch_compile
twin: a7_re_compile.py
source: robust-evaluation A7 (KernelGuard, KernelBench-Hard)
"""

import torch


@torch.compile(dynamic=True, backend="aot_eager")
def softmax(x):
    e = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)
