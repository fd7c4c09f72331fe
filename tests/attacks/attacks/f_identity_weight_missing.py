"""A weight that is the identity is not held, and its product is skipped.

family: F
problem: identity_layer
counterpart: f_identity_layer.py
expect: incorrect or rejected or failed
device: cpu
"""

import torch
import torch.nn as nn
class Layer(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Linear(features, features).bias
class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.layer = Layer(features)
    def forward(self, x):
        return torch.relu_(x + self.layer.bias)
