"""How much two processes of the same function differ: measured per device, by kind of call.

Two processes have different memory behind the same function. A call that streams over megabytes
can differ by several percent from process to process, which no number of calls in one process
shows. On a GPU the difference has two parts (`GPU_PARTS`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from tilewright.evaluator.devices.recorded_environment import read_by_device, write_for_device

FILE = "calibration.json"
CLASSES = ("up to 0.1 ms", "up to 1 ms", "over 1 ms", "streaming")
"""Classes of calls; whatever streams is in the last, however long it takes."""
GPU_PARTS = ("at 10 us", "up to 100 us")
"""The two parts of sigma on a GPU. The first is the time by which two processes differ, as a share
of a call of 10 us. The second is the further variation of calls of up to 100 us, as a share of the
call. Beyond 100 us this part is a constant time as well
(docs/lab/2026-11-22-gpu-process-variation.md)."""
GPU_AT_US = 10.0
GPU_SHARE_US = 100.0
GPU_MIN_SIGMA = 0.001
"""Lower limit of sigma on a GPU, however long a call is."""
GPU_SHORT_US = 20.0
"""A call up to this takes several process replicates on a GPU."""
PLANNED_REPLICATES, GPU_REPLICATES = 3, 2
"""Process replicates of a call whose processes differ by more than its blocks."""
STREAM_BYTES = 4 << 20
STREAM_BYTES_PER_US = 8e3
"""A call streams when it moves this many bytes, at this rate or faster."""


def class_of(call_us: float, moved_bytes: int) -> int:
    """Return the class of calls on a CPU of this duration (microseconds) and traffic."""
    if moved_bytes >= STREAM_BYTES and moved_bytes >= STREAM_BYTES_PER_US * call_us:
        return CLASSES.index("streaming")
    return 0 if call_us <= 100 else 1 if call_us <= 1000 else 2


def planned_replicates(call_us: float, moved_bytes: int, *, on_gpu: bool = False) -> int:
    """Return in how many process replicates a call is to be timed.

    The answer is one, unless processes differ by more than further blocks of one replicate could
    show. On a CPU that is so where a call is long or moves much, on a GPU where it is short.
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

        On a GPU baseline and candidate each have a variation that is a time. It weighs most in the
        shorter call; `candidate_us` is that of the candidate, if it is not as long.
        """
        if not self.on_gpu:
            return self.sigmas[class_of(call_us, moved_bytes)]
        own_us = candidate_us or call_us
        at_10_us, beside = self.sigmas
        noise = at_10_us * GPU_AT_US / math.sqrt(2)
        share = beside * share_left(min(call_us, own_us))
        return math.hypot(noise / call_us, noise / own_us, share, GPU_MIN_SIGMA)


def share_left(call_us: float) -> float:
    """Return which share of the second part of `GPU_PARTS` a call of this length has."""
    return min(1.0, GPU_SHARE_US / call_us)


DEFAULT = Calibration((0.05, 0.025, 0.004, 0.01), measured=False)
"""Calibration of a CPU that has not been measured. The values are wide on purpose for calls that
are timed in one process replicate. Calls in several replicates show their own scatter, so their
values are those of three machines (docs/measurements)."""
GPU_DEFAULT = Calibration((0.035, 0.0085), measured=False, on_gpu=True)
"""Calibration of a GPU that has not been measured: the values of H200s, less a seventh. An
interval already contains the difference of two clocks."""


def read_calibration(home: Path, device: str, *, on_gpu: bool = False) -> Calibration:
    """Return the calibration of `device` in `home`, or the default."""
    wide = GPU_DEFAULT if on_gpu else DEFAULT
    try:
        sigmas = tuple(float(value) for value in read_by_device(home / FILE)[device])
    except (ValueError, KeyError, TypeError):
        return wide
    if len(sigmas) != len(wide.classes) or not all(0 <= value < 1 for value in sigmas):
        return wide
    return Calibration(sigmas, measured=True, on_gpu=on_gpu)


def write_calibration(home: Path, device: str, sigmas: tuple[float, ...]) -> None:
    """Store the calibration of `device`; others in the file are kept."""
    write_for_device(home / FILE, device, list(sigmas))
