"""What a report says of speed, whatever the checks found: for ablations without checks. Pure."""

from __future__ import annotations

import math

from tilewright.records import EvalReport
from tilewright.records.events import Judgement

__all__ = ["measured", "without_checks"]


def measured(report: EvalReport) -> tuple[float, float | None] | None:
    """Return the speed-up over the timed cases against the first baseline, and its lower end.

    Both are geometric means, the latter of the lower ends of the cases: as low as if the errors of
    the cases were one. `None` where nothing was timed.
    """
    name = report.request.baselines[0].name if report.request.baselines else None
    chosen = [item for item in report.comparisons if item.baseline == name]
    if not chosen:
        return None
    lows = [item.speedup_low for item in chosen if item.speedup_low is not None]
    low = _mean(lows) if len(lows) == len(chosen) else None
    return _mean([item.speedup for item in chosen]), low


def _mean(values: list[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def without_checks(judgement: Judgement) -> Judgement:
    """Return the judgement as if no check had looked: what was rejected for a finding is correct.

    The wall stays up and the candidate was judged with all checks; only this view forgets what
    they found. A rejected candidate's outputs were right before it was rejected, and its speed-up
    is what was measured. Its coverage stays what it is.
    """
    if judgement.verdict != "rejected":
        return judgement
    return judgement.model_copy(
        update={
            "verdict": "correct",
            "speedup": judgement.unchecked,
            "low": judgement.unchecked_low,
            "high": None,
        }
    )
