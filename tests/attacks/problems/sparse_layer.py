"""A linear layer with sparse weights, and a rectifier."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.layer = nn.Linear(features, features)
        nn.init.sparse_(self.layer.weight, sparsity=0.995)

    def forward(self, x):
        return torch.relu(self.layer(x))


rows, features = 256, 2048


def get_inputs():
    return [torch.randn(rows, features)]


def get_init_inputs():
    return [features]
