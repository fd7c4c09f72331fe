"""A problem in KernelBench's format, written for these tests, and candidates for it."""

from __future__ import annotations

PROBLEM = """
import torch


class Model(torch.nn.Module):
    def __init__(self, shift):
        super().__init__()
        self.shift = shift

    def forward(self, x):
        return torch.relu(x) + self.shift


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return [2.0]
"""
RIGHT = PROBLEM.partition("\ndef get_inputs")[0].replace("Model(", "ModelNew(")
WRONG = RIGHT.replace("+ self.shift", "- self.shift")
RAISING = RIGHT.replace("return torch.relu", "raise ValueError('boom')\n        return torch.relu")
RANDOM = PROBLEM.replace("torch.relu(x)", "torch.rand_like(x)")
