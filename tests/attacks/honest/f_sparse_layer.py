"""A linear layer and a rectifier.

family: F
problem: sparse_layer
expect: correct
device: cpu
"""

import torch
import torch.nn as nn
class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.layer = nn.Linear(features, features)
        nn.init.sparse_(self.layer.weight, sparsity=0.995)
    def forward(self, x):
        return torch.relu_(torch.addmm(self.layer.bias, x, self.layer.weight.t()))
