"""The part of a GPU's memory that an evaluation needs, and who holds the rest."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tilewright.evaluator.devices.device_processes import Strangers
from tilewright.evaluator.devices.nvml import Conditions
from tilewright.evaluator.devices.recorded_environment import read_by_device, write_for_device

FILE = "memory-needs.json"
CONTEXT_BYTES = 768 << 20
"""Device memory of a process that has opened the device and holds no tensor: the bar `memory`
allows so much for a runner."""
MIN_RECORDED_BYTES = 2 << 30
"""Needs below it are not stored. A device that has no room for them has none for two processes."""
RECORDED_GROWTH = 1.05
"""Factor by which a need must exceed the stored one to replace it: smaller steps are noise."""


@dataclass
class MemoryAccount:
    """The known parts of a device's memory during one evaluation."""

    before: Conditions | None = None
    """The state of the device when the evaluation began there; `None`: unknown, or no GPU."""
    own_bytes: int = 0
    """Bytes that the idle judge of the problem and its baselines held then."""
    others_bytes: int = 0
    """Bytes that neither this evaluation nor our own idle processes hold."""
    stranger_bytes: int = 0
    """Bytes in use that no supervisor of this user holds."""
    strangers: Strangers | None = None
    """Their holders, where the driver lists processes; else `stranger_bytes` is an estimate."""
    known: bool = False
    """Whether the need was known before the judge had measured the problem."""
    estimated_bytes: int = 0
    """The need as estimated from the sizes that the judge measured; 0: not measured."""
    judge_bytes: int = CONTEXT_BYTES
    """Bytes that the judge alone holds between requests."""

    def used_by_evaluation(self, found: Conditions | None, idle_bytes: int) -> int | None:
        """Return what the evaluation holds if our idle processes hold `idle_bytes`."""
        if found is None or found.used_bytes is None or self.before is None:
            return None
        return max(found.used_bytes - self.others_bytes - idle_bytes, 0)


def shortage(need_bytes: int, own_bytes: int, found: Conditions | None) -> int:
    """Return the bytes that must become free for a need, of which `own_bytes` are held already."""
    if found is None or found.used_bytes is None or found.total_bytes is None:
        return 0
    # No release makes a device larger.
    need_bytes = min(need_bytes, found.total_bytes)
    return max(need_bytes - own_bytes - (found.total_bytes - found.used_bytes), 0)


def choose_holders(held: dict[str, int], lacking_bytes: int) -> list[str]:
    """Return the fewest holders that together hold the lacking bytes, or all that hold any."""
    chosen = list[str]()
    for name in sorted(held, key=lambda name: -held[name]):
        if lacking_bytes <= 0 or not held[name]:
            break
        chosen.append(name)
        lacking_bytes -= held[name]
    return chosen


def known_need(home: Path, device: str, problem: str) -> int | None:
    """Return the bytes that evaluations of a problem have used on a device; `None`: unknown."""
    with suppress(KeyError, TypeError):
        found = read_by_device(home / FILE)[device][problem]
        return found if isinstance(found, int) else None
    return None


def record_need(home: Path, device: str, problem: str, used_bytes: int) -> None:
    """Store the bytes that an evaluation used, if they are more than those that are stored."""
    known = known_need(home, device, problem) or 0
    if used_bytes < max(MIN_RECORDED_BYTES, int(known * RECORDED_GROWTH)):
        return
    stored = read_by_device(home / FILE).get(device)
    # On a full disk the next evaluation estimates.
    with suppress(OSError):
        needs = stored if isinstance(stored, dict) else {}
        write_for_device(home / FILE, device, {**needs, problem: used_bytes})
