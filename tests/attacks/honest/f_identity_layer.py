"""A linear layer and a rectifier.

family: F
problem: identity_layer
expect: correct
device: cpu
"""

import torch
import torch.nn as nn
class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.layer = nn.Linear(features, features)
        nn.init.eye_(self.layer.weight)
    def forward(self, x):
        return torch.relu_(torch.addmm(self.layer.bias, x, self.layer.weight.t()))
