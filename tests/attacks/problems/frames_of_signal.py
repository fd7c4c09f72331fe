"""Overlapping frames of a signal, each a row of its own."""

import torch

ENTRY = "frames_of_signal"
CASES = [{"name": "main", "pages": 192, "width": 8192, "hop": 1024}]


def inputs(case, generator):
    return (torch.randn(case["pages"] * 1024, generator=generator),)


def reference(x):
    return x.unfold(0, 8192, 1024).contiguous()
