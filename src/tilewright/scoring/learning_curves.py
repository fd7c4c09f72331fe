"""The results of a model by turn, of that turn and of the best answer up to it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from tilewright.records.events import Turn
from tilewright.scoring import metrics
from tilewright.scoring.benchmarks.drkernel import THRESHOLDS
from tilewright.scoring.metrics import Score
from tilewright.scoring.summary import score_of


def curves(turns: Sequence[Turn], weak: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return for each turn of trajectories fast_p of that turn, and of the best up to it.

    The measurements that select the best answer also score it, so these rows are biased upwards.
    That is why a run measures its best candidate again before it reports it. Turns without a
    verdict are missing in their row. Ended trajectories keep their best score. Problems in `weak`
    do not count strictly, as in `summary_of`.
    """
    trajectories: dict[tuple[str, int], dict[int, Score | None]] = defaultdict(dict)
    for turn in turns:
        if not turn.judgements or turn.ask.role != "propose":
            continue
        first, key = turn.judgements[0], (turn.ask.problem, turn.ask.sample)
        if first.protocol != "strict" or turn.ask.problem not in weak:
            trajectories[key][turn.ask.turn] = score_of(first)
    length = max((max(found) + 1 for found in trajectories.values()), default=0)
    bests = [_bests(found, length) for found in trajectories.values()]
    rows = []
    for number in range(length):
        now = [score for found in trajectories.values() if (score := found.get(number))]
        best = [score for found in bests if (score := found[number])]
        rows.append(
            {
                "turn": number + 1,
                "judged": len(now),
                "correct": _correct(now),
                "fast_p": _fast(now),
                "best_correct": _correct(best),
                "best_fast_p": _fast(best),
            }
        )
    return rows


def _bests(found: dict[int, Score | None], length: int) -> list[Score | None]:
    """Return the best score up to each turn; before a correct one, the last."""
    rows: list[Score | None] = []
    for number in range(length):
        known = [score for score in (*rows[-1:], found.get(number)) if score is not None]
        rows.append(metrics.best_so_far(known)[-1] or known[-1] if known else None)
    return rows


def _correct(scores: Sequence[Score]) -> float | None:
    return sum(item.ok for item in scores) / len(scores) if scores else None


def _fast(scores: Sequence[Score]) -> dict[str, float]:
    if not scores or metrics.untimed(scores):
        return {}
    return {f"{p:g}": metrics.fast_p(scores, p) for p in THRESHOLDS}
