"""Faster than the outputs can be written: no algorithm can be."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.checks.evidence import Evidence, Observation
from tilewright.records import Finding

__all__ = ["CHECK"]

MARGIN = 1.5
"""The floor is measured on the same machine by the same kind of copy, which itself may scatter."""


@dataclass(frozen=True)
class SpeedFloor:
    """A call must last at least as long as its outputs take to be written."""

    name: str = "speed_floor"

    def inspect(self, evidence: Evidence) -> Observation:
        """Reject a time that is impossible on this machine."""
        if evidence.floor_s is None or evidence.call_s * MARGIN >= evidence.floor_s:
            return Observation()
        finding = Finding(
            check=self.name,
            code="impossible speed",
            summary=f"{evidence.call_s * 1e6:.1f} us a call; writing its outputs alone takes "
            f"{evidence.floor_s * 1e6:.1f} us",
            weight="decisive",
            evidence={"call_s": evidence.call_s, "floor_s": evidence.floor_s},
        )
        return Observation(findings=(finding,))


CHECK = SpeedFloor()
