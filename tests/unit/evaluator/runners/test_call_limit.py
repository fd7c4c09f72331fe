"""A call is late by its own time, and not by that of other processes on its core."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pytest

from tilewright.evaluator.runners.call_limit import MOST, CallLimit


@dataclass
class Tree:
    """A runner that uses this share of the time."""

    share: float
    runnable: bool
    began: float = field(default_factory=time.monotonic)

    def cpu_s(self) -> float:
        return 7.0 + self.share * (time.monotonic() - self.began)

    def payload_is_runnable(self) -> bool:
        return self.runnable


@pytest.mark.parametrize(
    ("share", "runnable", "late_after"),
    [(0.0, True, MOST), (0.5, True, 2.0), (1.1, True, 1.0), (0.0, False, 1.0)],
)
def test_time_without_a_core_is_not_the_candidates(share, runnable, late_after):
    limit, began = CallLimit(Tree(share, runnable), 0.1), time.monotonic()
    while not limit.is_over():
        time.sleep(0.001)
    took = (time.monotonic() - began) / 0.1
    assert late_after * 0.99 <= took < late_after + 0.9
