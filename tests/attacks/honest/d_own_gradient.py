"""A gradient by hand, which the forward pass computes and the backward pass scales.

family: D
problem: cross_entropy
expect: correct
device: cpu, cuda
"""

import torch


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(context, logits, targets):
        rows = torch.arange(len(logits), device=logits.device)
        logs = torch.log_softmax(logits, dim=-1)
        gradient = logs.exp()
        gradient[rows, targets] -= 1
        context.save_for_backward(gradient.div_(len(logits)))
        return -logs[rows, targets].mean()

    @staticmethod
    def backward(context, outer):
        (gradient,) = context.saved_tensors
        return gradient * outer, None


def cross_entropy(logits, targets):
    return CrossEntropy.apply(logits, targets)
