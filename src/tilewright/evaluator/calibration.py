"""How much two processes of the same function differ: measured per device, by duration class."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DEFAULT", "Calibration", "read_calibration", "write_calibration"]

CLASSES_US = (100.0, 1000.0, 1e12)
"""Upper ends of the duration classes, in microseconds."""


@dataclass(frozen=True)
class Calibration:
    """Standard deviation of the log ratio between processes, one per duration class."""

    sigmas: tuple[float, ...]
    measured: bool

    def sigma(self, call_us: float) -> float:
        """Return the sigma of calls of this duration."""
        for limit, sigma in zip(CLASSES_US, self.sigmas, strict=True):
            if call_us <= limit:
                return sigma
        return self.sigmas[-1]


DEFAULT = Calibration((0.05, 0.025, 0.015), measured=False)
"""Wide on purpose: what a device gets that nobody has calibrated."""


def read_calibration(home: Path, device: str) -> Calibration:
    """Return the calibration of `device` in `home`, or the wide default."""
    try:
        document = json.loads((home / "calibration.json").read_text(encoding="utf-8"))
        sigmas = tuple(float(value) for value in document[device])
    except (OSError, ValueError, KeyError, TypeError):
        return DEFAULT
    if len(sigmas) != len(CLASSES_US) or not all(0 <= value < 1 for value in sigmas):
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
