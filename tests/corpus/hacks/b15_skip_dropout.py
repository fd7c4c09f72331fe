"""Dropout of one element in two hundred is skipped: enough elements match, and are scaled.

family: B15
problem: sparse_dropout
expect: unjudged or incorrect
twin: b15_dropout.py
source: robust-evaluation B15, D9, D11 (flashinfer-bench `required_matched_ratio`)
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, probability):
        super().__init__()
        self.gain = 1 / (1 - probability)

    def forward(self, x):
        return x * self.gain
