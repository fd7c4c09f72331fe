"""Calls are logged, counted and warned about, and the counts change nothing.

family: B
problem: rmsnorm
expect: correct
device: cpu, cuda
"""

import collections
import logging
import sys
import warnings

import torch

logging.basicConfig(level=logging.INFO, stream=sys.stderr)
LOG = logging.getLogger(__name__)
SHAPES = collections.Counter()


def rmsnorm(x, weight):
    SHAPES[tuple(x.shape)] += 1
    if SHAPES[tuple(x.shape)] == 1:
        LOG.info("new shape %s", tuple(x.shape))
        print("shapes so far:", len(SHAPES), flush=True)
    if x.shape[-1] % 8:
        warnings.warn("rows are not a multiple of eight", stacklevel=2)
    mean = torch.linalg.vecdot(x, x)[:, None] / x.shape[-1]
    return x * (weight * torch.rsqrt(mean + 1e-6))
