"""How near a call comes to what its device can do at most (Williams et al. 2009, the roofline).

The least time of a call is the larger of two: its necessary bytes at the measured bandwidth, and
its counted operations at the measured rate of products in its precision. Inputs and outputs count
once each, so a kernel whose inputs are still in a cache can be faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilewright.records import Ceilings, Comparison, EvalReport, Work

__all__ = ["Light", "least_us", "lights"]


@dataclass(frozen=True)
class Light:
    """One case against the ceilings of its device."""

    case: str
    limit: Literal["memory", "compute"]
    least_us: float
    """Microseconds below which the ceilings allow no call that reads and writes everything."""
    ceiling: float
    """The ceiling that limits: bytes, or operations, per second."""
    candidate_share: float
    """The least time over the candidate's; above 1 where caches helped."""
    reference_share: float
    bytes_per_s: float
    """Necessary bytes over the candidate's time."""
    flops_per_s: float | None
    work: Work
    comparison: Comparison


def least_us(work: Work, ceilings: Ceilings) -> tuple[float, Literal["memory", "compute"]]:
    """Return the least microseconds of a call, and which ceiling says so."""
    moving = work.moved_bytes / ceilings.memory_bandwidth_bytes_per_s * 1e6
    rate = ceilings.flops_per_s.get(work.precision)
    computing = (work.flops or 0) / rate * 1e6 if rate else 0.0
    return (computing, "compute") if computing > moving else (moving, "memory")


def lights(report: EvalReport) -> list[Light]:
    """Return one `Light` a case that was timed on a device, against the first baseline."""
    ceilings = report.ceilings
    if ceilings is None or not report.request.baselines:
        return []
    first = report.request.baselines[0].name
    timed = {item.case: item for item in report.comparisons if item.baseline == first}
    found = []
    for work in report.work:
        item = timed.get(work.case)
        if item is None or not work.moved_bytes:
            continue
        least, limit = least_us(work, ceilings)
        seconds = item.candidate.median_us / 1e6
        rates = {
            "memory": ceilings.memory_bandwidth_bytes_per_s,
            "compute": ceilings.flops_per_s[work.precision],
        }
        found.append(
            Light(
                case=work.case,
                limit=limit,
                least_us=least,
                ceiling=rates[limit],
                candidate_share=least / item.candidate.median_us,
                reference_share=least / item.baseline_timing.median_us,
                bytes_per_s=work.moved_bytes / seconds,
                flops_per_s=work.flops / seconds if work.flops else None,
                work=work,
                comparison=item,
            )
        )
    return found
