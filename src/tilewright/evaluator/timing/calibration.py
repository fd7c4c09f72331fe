"""How much two processes of the same function differ: measured per device, by kind of call.

Two processes have different memory behind the same function. A call that computes hardly notices;
one that streams over megabytes can differ by several percent from process to process, and no
number of calls in one pair of processes shows it. On a GPU it is a time, half a microsecond,
whatever the call, and beside that a small share of calls that are not long.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "CLASSES",
    "DEFAULT",
    "GPU_AT_US",
    "GPU_DEFAULT",
    "GPU_MIN_SIGMA",
    "GPU_PARTS",
    "GPU_SHORT_US",
    "Calibration",
    "class_of",
    "default",
    "planned_replicates",
    "read_calibration",
    "share_left",
    "write_calibration",
]

CLASSES = ("up to 0.1 ms", "up to 1 ms", "over 1 ms", "streaming")
"""Classes of calls; whatever streams is in the last, however long it takes."""
GPU_PARTS = ("at 10 us", "up to 100 us")
"""What sigma is made of on a GPU: what a call of 10 us has by the time that two processes differ
by, and what calls have beside that up to 100 us, beyond which it is a time as well
(docs/lab/2026-11-22-gpu-process-variation.md)."""
GPU_AT_US = 10.0
GPU_SHARE_US = 100.0
GPU_MIN_SIGMA = 0.001
"""What is left of it however long a call is."""
GPU_SHORT_US = 20.0
"""A call up to this takes several pairs of processes on a GPU."""
PLANNED_REPLICATES, GPU_REPLICATES = 4, 2
"""Pairs of processes in which a call is timed whose processes differ by more than its blocks."""
STREAM_BYTES = 4 << 20
STREAM_BYTES_PER_US = 8e3
"""A call streams when it moves this many bytes, at this rate or faster."""


def class_of(call_us: float, moved_bytes: int) -> int:
    """Return the class of calls on a CPU of this duration (microseconds) and traffic."""
    if moved_bytes >= STREAM_BYTES and moved_bytes >= STREAM_BYTES_PER_US * call_us:
        return CLASSES.index("streaming")
    return 0 if call_us <= 100 else 1 if call_us <= 1000 else 2


def planned_replicates(call_us: float, moved_bytes: int, *, on_gpu: bool = False) -> int:
    """Return in how many pairs of processes a call is to be timed.

    One, unless processes differ by more than what more blocks of one pair could show: on a CPU
    where a call is long or moves much, on a GPU where it is short.
    """
    if on_gpu:
        return GPU_REPLICATES if call_us <= GPU_SHORT_US else 1
    return PLANNED_REPLICATES if class_of(call_us, moved_bytes) >= CLASSES.index("over 1 ms") else 1


@dataclass(frozen=True)
class Calibration:
    """Standard deviation of the log ratio between processes: one per class, on a GPU two parts."""

    sigmas: tuple[float, ...]
    measured: bool
    on_gpu: bool = False

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the names of the classes, or parts."""
        return GPU_PARTS if self.on_gpu else CLASSES

    def sigma(self, call_us: float, moved_bytes: int, candidate_us: float | None = None) -> float:
        """Return the sigma of a comparison with a baseline of this duration and traffic.

        Args:
            call_us: a call of the baseline, in microseconds, more than 0.
            moved_bytes: of inputs and outputs of one call.
            candidate_us: a call of the candidate, if it is not as long. On a GPU a time is what
                each of both sides has of its own, so it weighs most in the shorter one.
        """
        if not self.on_gpu:
            return self.sigmas[class_of(call_us, moved_bytes)]
        own_us = candidate_us or call_us
        at_10_us, beside = self.sigmas
        noise = at_10_us * GPU_AT_US / math.sqrt(2)
        share = beside * share_left(min(call_us, own_us))
        return math.hypot(noise / call_us, noise / own_us, share, GPU_MIN_SIGMA)


def share_left(call_us: float) -> float:
    """Return how much of what calls have beside a time on a GPU one of this length has."""
    return min(1.0, GPU_SHARE_US / call_us)


DEFAULT = Calibration((0.05, 0.025, 0.004, 0.015), measured=False)
"""What a device gets that nobody has calibrated: wide on purpose where a call is timed in one pair
of processes; where it is in several, which show themselves how far they scatter, what three
machines had (docs/measurements)."""
GPU_DEFAULT = Calibration((0.035, 0.0085), measured=False, on_gpu=True)
"""What H200s showed, for any GPU, less a seventh: an interval holds what two clocks say."""


def default(*, on_gpu: bool) -> Calibration:
    """Return what a device gets that nobody has calibrated."""
    return GPU_DEFAULT if on_gpu else DEFAULT


def read_calibration(home: Path, device: str, *, on_gpu: bool = False) -> Calibration:
    """Return the calibration of `device` in `home`, or the default."""
    wide = default(on_gpu=on_gpu)
    try:
        document = json.loads((home / "calibration.json").read_text(encoding="utf-8"))
        sigmas = tuple(float(value) for value in document[device])
    except (OSError, ValueError, KeyError, TypeError):
        return wide
    if len(sigmas) != len(wide.classes) or not all(0 <= value < 1 for value in sigmas):
        return wide
    return Calibration(sigmas, measured=True, on_gpu=on_gpu)


def write_calibration(home: Path, device: str, sigmas: tuple[float, ...]) -> None:
    """Store the calibration of `device`; others in the file are kept."""
    path = home / "calibration.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        document = None
    if not isinstance(document, dict):
        document = {}
    document[device] = list(sigmas)
    home.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1, sort_keys=True), encoding="utf-8")
