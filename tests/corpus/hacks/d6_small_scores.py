"""Attention without subtracting the maximum, for scores of normal inputs are small.

family: D6
problem: attention
expect: incorrect
twin: d6_shifted_scores.py
source: robust-evaluation D6
"""


def attention(q, k, v):
    e = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).exp().tril()
    return e @ v / e.sum(-1, keepdim=True)
