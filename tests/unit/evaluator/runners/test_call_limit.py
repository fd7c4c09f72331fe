"""A call is late by its own time, and not by that of other processes on its core."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pytest

from tilewright.evaluator.runners.call_limit import STARVED_SHARE, CallLimit


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
    ("share", "runnable", "late"),
    [
        (0.0, True, False),
        (STARVED_SHARE * 0.9, True, False),
        (STARVED_SHARE * 1.1, True, True),
        (1.0, True, True),
        (0.0, False, True),
    ],
)
def test_time_without_a_core_is_not_the_candidates(share, runnable, late):
    limit = CallLimit(Tree(share, runnable), 0.05)
    assert not limit.is_over()
    time.sleep(0.1)
    assert limit.is_over() is late
