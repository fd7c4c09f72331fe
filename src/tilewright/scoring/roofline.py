"""The share of a device's roofline that a call reaches (Williams et al., CACM 52, 2009).

The least time of a call is the larger of two times. One is its necessary bytes at the measured
bandwidth. The other is its counted operations at the measured rate of matrix products in its
precision. Inputs and outputs count once each, so a kernel with inputs in a cache can be faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilewright.records import Ceilings, Comparison, EvalReport, Work
from tilewright.scoring.paired_times import paired_times


@dataclass(frozen=True)
class RooflinePoint:
    """One case, compared with the ceilings of its device."""

    case: str
    limit: Literal["memory", "compute"]
    least_us: float
    """Microseconds: the ceilings allow no shorter call that reads and writes everything."""
    ceiling: float
    """The limiting ceiling, in bytes or operations per second."""
    candidate_us: float
    """The candidate's time, as tables show it next to the speed-up."""
    candidate_share: float
    """The least time over the candidate's; above 1 if caches helped."""
    reference_share: float
    bytes_per_s: float
    """Necessary bytes over the candidate's time."""
    flops_per_s: float | None
    work: Work
    comparison: Comparison


def least_us(work: Work, ceilings: Ceilings) -> tuple[float, Literal["memory", "compute"]]:
    """Return the least microseconds of a call, and the ceiling that sets them."""
    moving = work.moved_bytes / ceilings.memory_bandwidth_bytes_per_s * 1e6
    rate = ceilings.flops_per_s.get(work.precision)
    computing = (work.flops or 0) / rate * 1e6 if rate else 0.0
    return (computing, "compute") if computing > moving else (moving, "memory")


def roofline_points(report: EvalReport) -> list[RooflinePoint]:
    """Return a point for each case that was timed against the first baseline."""
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
        times = paired_times(item)
        seconds = times.candidate_us / 1e6
        moved_per_s = ceilings.memory_bandwidth_bytes_per_s
        found.append(
            RooflinePoint(
                case=work.case,
                limit=limit,
                least_us=least,
                ceiling=moved_per_s if limit == "memory" else ceilings.flops_per_s[work.precision],
                candidate_us=times.candidate_us,
                candidate_share=least / times.candidate_us,
                reference_share=least / times.baseline_us,
                bytes_per_s=work.moved_bytes / seconds,
                flops_per_s=work.flops / seconds if work.flops else None,
                work=work,
                comparison=item,
            )
        )
    return found
