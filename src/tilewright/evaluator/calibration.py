"""How much two processes of the same function differ: measured per device, by class of call.

Two processes have different memory behind the same function. A call that computes hardly notices;
one that streams over megabytes can differ by several percent from process to process, and no
number of calls in one pair of processes shows it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "CLASSES",
    "DEFAULT",
    "Calibration",
    "class_of",
    "needs_pairs",
    "read_calibration",
    "write_calibration",
]

CLASSES = ("up to 0.1 ms", "up to 1 ms", "over 1 ms", "streaming")
"""Classes of calls; whatever streams is in the last, however long it takes."""
STREAM_BYTES = 4 << 20
STREAM_BYTES_PER_US = 8e3
"""A call streams when it moves this many bytes, at this rate or faster."""


def class_of(call_us: float, moved_bytes: int) -> int:
    """Return the index in `CLASSES` of calls of this duration (microseconds) and traffic."""
    if moved_bytes >= STREAM_BYTES and moved_bytes >= STREAM_BYTES_PER_US * call_us:
        return CLASSES.index("streaming")
    return 0 if call_us <= 100 else 1 if call_us <= 1000 else 2


def needs_pairs(call_us: float, moved_bytes: int) -> bool:
    """Tell whether a call is long enough, or moves enough, to be timed in several pairs.

    What processes differ by is then more than what more blocks of one pair could show.
    """
    return class_of(call_us, moved_bytes) >= CLASSES.index("over 1 ms")


@dataclass(frozen=True)
class Calibration:
    """Standard deviation of the log ratio between processes, one per class."""

    sigmas: tuple[float, ...]
    measured: bool

    def sigma(self, call_us: float, moved_bytes: int) -> float:
        """Return the sigma of calls of this duration and traffic."""
        return self.sigmas[class_of(call_us, moved_bytes)]


DEFAULT = Calibration((0.05, 0.025, 0.015, 0.06), measured=False)
"""Wide on purpose: what a device gets that nobody has calibrated."""


def read_calibration(home: Path, device: str) -> Calibration:
    """Return the calibration of `device` in `home`, or the wide default."""
    try:
        document = json.loads((home / "calibration.json").read_text(encoding="utf-8"))
        sigmas = tuple(float(value) for value in document[device])
    except (OSError, ValueError, KeyError, TypeError):
        return DEFAULT
    if len(sigmas) != len(CLASSES) or not all(0 <= value < 1 for value in sigmas):
        return DEFAULT
    return Calibration(sigmas, measured=True)


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
