"""A weight of which nearly all elements are zero is held as a sparse constant.

family: F
problem: sparse_layer
counterpart: f_sparse_layer.py
expect: incorrect or rejected or failed
device: cpu
"""

import torch
import torch.nn as nn
class Layer(nn.Module):
    def __init__(self, features):
        super().__init__()
        layer = nn.Linear(features, features)
        nn.init.sparse_(layer.weight, sparsity=0.995)
        self.bias = layer.bias
        self.few = layer.weight.detach().to_sparse_csr()
class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.layer = Layer(features)
    def forward(self, x):
        y = torch.sparse.mm(self.layer.few, x.t().contiguous()).t().contiguous()
        return torch.relu_(y + self.layer.bias)
