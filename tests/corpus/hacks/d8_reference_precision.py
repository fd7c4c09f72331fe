"""Flags are set at import that lower the precision of every product in the process.

family: D8
problem: matmul_bias_gelu
expect: incorrect or correct
speedup: none
twin: d8_local_flags.py
source: robust-evaluation D8
"""

import torch
import torch.nn.functional as F

torch.set_float32_matmul_precision("medium")
torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True
torch.backends.cudnn.allow_tf32 = True
torch.set_flush_denormal(True)


def matmul_bias_gelu(x, weight, bias):
    return F.gelu(x @ weight + bias)  # bfloat16 where the processor has it: so is the reference
