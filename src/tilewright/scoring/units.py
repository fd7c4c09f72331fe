"""Numbers as people read them: three digits, and the unit that suits."""

from __future__ import annotations

__all__ = ["engineering", "short_time"]

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def engineering(value: float, unit: str) -> str:
    """Return a number with three digits and a decimal prefix."""
    for limit, prefix in _PREFIXES:
        if value >= limit:
            return f"{value / limit:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def short_time(microseconds: float) -> str:
    """Return a time in the unit that suits it."""
    for limit, unit in ((1e3, "us"), (1e6, "ms")):
        if microseconds < limit:
            return f"{microseconds / (limit / 1e3):.3g} {unit}"
    return f"{microseconds / 1e6:.3g} s"
