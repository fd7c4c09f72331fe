"""A plan is a dataclass whose annotations are text, and the file reads its own source.

family: I
problem: quantised_matmul
expect: correct
device: cpu, cuda
"""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass
from functools import cache

import torch


@dataclass(frozen=True)
class Plan:
    rows: int
    columns: int
    version: str


def tile(x, weight, scale):
    return torch.mm(x, weight.t().to(x.dtype)).mul_(scale)


@cache
def plan_of(columns: int) -> Plan:
    source = inspect.getsource(tile) + inspect.getsource(Plan)
    return Plan(256, columns, hashlib.sha256(source.encode()).hexdigest())


def quantised_matmul(x, weight, scale):
    plan = plan_of(x.shape[-1])
    parts = zip(weight.split(plan.rows), scale.split(plan.rows))
    return torch.cat([tile(x, part, factor) for part, factor in parts], dim=1)
