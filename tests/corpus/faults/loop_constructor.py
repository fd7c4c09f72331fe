"""An endless loop in the constructor.

problem: mlp
expect: failed
reason: timeout
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        while True:
            pass
