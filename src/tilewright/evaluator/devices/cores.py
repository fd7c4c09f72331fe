"""Which cores time implementations, and which ones everything else runs on."""

from __future__ import annotations

from dataclasses import dataclass

SMALL_MACHINE_CORES = 4
"""Up to this many cores only one is timed; larger machines time on half of their cores."""


@dataclass(frozen=True)
class Cores:
    """The split of the cores. All timed runners share one set, on which nothing else runs."""

    runners: tuple[int, ...]
    judge: tuple[int, ...]

    @property
    def threads(self) -> int:
        """Return the number of threads that each timed runner gets."""
        return len(self.runners)

    @property
    def separate(self) -> bool:
        """Tell whether the clock has a core of its own; without one no time is reported."""
        return not set(self.runners) & set(self.judge)


def plan_cores(available: list[int]) -> Cores:
    """Split the cores: one for the runners on small machines, else half of them."""
    ordered = sorted(available)
    count = 1 if len(ordered) <= SMALL_MACHINE_CORES else len(ordered) // 2
    return Cores(tuple(ordered[:count]), tuple(ordered[count:] or ordered))
