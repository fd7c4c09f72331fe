"""As a module without any parameter: nothing can be loaded into it.

family: B3
problem: layernorm_module
expect: incorrect
twin: b3_renamed_parameters.py
source: robust-evaluation B3
"""

import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.features = features

    def forward(self, x):
        return F.layer_norm(x, (self.features,))
