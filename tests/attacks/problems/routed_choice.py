"""The expert with the largest score among those that a mask allows each token."""

import torch

ENTRY = "routed_choice"
CASES = [{"name": "main", "tokens": 512, "width": 256, "experts": 64}]


def inputs(case, generator):
    tokens = torch.randn(case["tokens"], case["width"], generator=generator)
    experts = torch.randn(case["experts"], case["width"], generator=generator)
    allowed = torch.rand(case["tokens"], case["experts"], generator=generator) < 0.5
    return tokens, experts, allowed


def reference(tokens, experts, allowed):
    return (tokens @ experts.T).masked_fill(~allowed, float("-inf")).argmax(-1)
