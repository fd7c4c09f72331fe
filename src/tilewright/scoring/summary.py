"""From turns to the numbers of a run: counts, fast_p, groups, flips between protocols. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any

from tilewright.records import Protocol
from tilewright.records.codes import FailureReason, LabelName, UnjudgedReason
from tilewright.records.events import EvalSummary, Turn
from tilewright.scoring import metrics
from tilewright.scoring.benchmarks.drkernel import drkernel
from tilewright.scoring.benchmarks.kernelbench_x import call_and_execute
from tilewright.scoring.intervals import Interval, decide
from tilewright.scoring.metrics import Score
from tilewright.scoring.protocol_differences import cause_of, kind_of

THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0)
"""Ratios: the thresholds of KernelBench and of Dr. Kernel."""
SAMPLES = (1, 2, 4, 8)
"""Numbers of samples k of pass@k and fast@k."""
WRITTEN = ("propose", "draft")
"""Roles of requests that write a candidate; `measure` judges an earlier one once more."""
Grouped = dict[str, list[Score]]
"""The scores of each problem; none for a problem without a candidate."""


def score_of(item: EvalSummary) -> Score | None:
    """Return the score of a judgement; `None`: not judged, so the caller leaves it out."""
    if item.verdict == "unjudged":
        return None
    rejected = item.verdict == "rejected"
    return Score(item.verdict == "correct", item.speedup, item.low, rejected=rejected)


@lru_cache(maxsize=10_000)
def group_of(problem: str) -> str:
    """Return the level or category in a problem's id; empty if it has none."""
    parts = problem.split("/")
    if len(parts) > 2:
        return parts[1]
    level = re.match(r"(level\d+)-\d+$", parts[-1])
    return level[1] if level else ""


def summary_of(
    turns: Sequence[Turn], weak: Collection[str] = (), unanswered: Collection[str] = ()
) -> dict[str, Any]:
    """Return the numbers of a run as one JSON document, by protocol.

    Problems in `weak`, and those that a report labels as weak, count under published rules alone:
    an answer that does no work passes on them. A share is the mean over problems of the share of a
    problem's candidates. It is 0 for a problem in `unanswered`, which has no candidate.
    """
    weak = weak_problems(turns).union(weak)
    protocols = dict.fromkeys(item.protocol for turn in turns for item in turn.judgements)
    judged = [turn for turn in turns if turn.judgements]
    last = last_of_trajectories(judged)
    flips = _flips(turns)
    return {
        "candidates": sum(turn.ask.role in WRITTEN for turn in turns),
        "problems": len({turn.ask.problem for turn in turns}),
        "unanswered": len(unanswered),
        "earlier_turns": len(judged) - len(last),
        "protocols": {
            name: _of_protocol(last, name, weak, unanswered) | _of_all(judged, name, weak)
            for name in protocols
        },
        "drkernel": drkernel(turns),
        "flips": flips,
        "flip_kinds": _kinds_of(flips),
    }


def weak_problems(turns: Iterable[Turn]) -> set[str]:
    """Return the problems that reports of strict verdicts name weak or unsound."""
    return {
        turn.ask.problem
        for turn in turns
        for item in turn.judgements
        if item.protocol == "strict"
        and (item.code == UnjudgedReason.UNSOUND_PROBLEM or LabelName.WEAK_PROBLEM in item.labels)
    }


def last_of_trajectories(turns: Iterable[Turn]) -> list[Turn]:
    """Return the last turn of each trajectory; earlier turns are no independent samples."""
    last: dict[tuple[str, int], Turn] = {}
    for turn in turns:
        kept = last.setdefault(key := (turn.ask.problem, turn.ask.sample), turn)
        last[key] = turn if turn.ask.turn >= kept.ask.turn else kept
    return list(last.values())


def _of_protocol(
    turns: Sequence[Turn], protocol: Protocol, weak: Collection[str], unanswered: Collection[str]
) -> dict[str, Any]:
    left_out = _left_out(protocol, weak)
    judged, by_problem, lacking = _counted(turns, protocol, left_out, unanswered)
    groups = sorted({group_of(problem) for problem in by_problem} - {""})
    kinds = [(item.verdict, kind_of(item)) for _, item in judged if item.verdict != "correct"]
    found = {
        "verdicts": dict(Counter(item.verdict for _, item in judged)),
        "kinds": dict(Counter(f"{verdict}: {kind}" for verdict, kind in kinds if kind)),
        "labels": dict(Counter(name for _, item in judged for name in item.labels)),
        "findings": dict(Counter(name for _, item in judged for name in item.findings)),
        "weak_left_out": len(left_out & {turn.ask.problem for turn in turns}.union(unanswered)),
        "unanswered": len(lacking),
        **_faster(judged),
        **_numbers(by_problem),
    }
    nothing = EvalSummary(
        protocol=protocol, verdict="failed", reason="no_candidate", code=FailureReason.NO_CANDIDATE
    )
    tasks = [*judged, *((problem, nothing) for problem in lacking)]
    if protocol == "official" and (published := call_and_execute(tasks)):
        found["published"] = published
    if len(groups) > 1:
        found["groups"] = {
            group: _numbers({p: s for p, s in by_problem.items() if group_of(p) == group}, 200)
            for group in groups
        }
        pairs = [(ok, group_of(p)) for p, scores in by_problem.items() for ok in _solved(scores)]
        found["explained_by_group"] = metrics.explained_deviance(*zip(*pairs, strict=True))
    return found


def _of_all(turns: Sequence[Turn], protocol: Protocol, weak: Collection[str]) -> dict[str, Any]:
    """Return numbers of all turns; the others are of the last turn of each trajectory."""
    judged, *_ = _counted(turns, protocol, _left_out(protocol, weak), ())
    correct = sum(item.verdict == "correct" for _, item in judged)
    return {"best_of_all_turns": _faster(judged)["best"], "correct_turns": correct}


def _faster(judged: Sequence[tuple[str, EvalSummary]]) -> dict[str, Any]:
    """Return the number of candidates whose interval shows that they are faster, and the best."""
    found: list[dict[str, Any]] = []
    for problem, item in judged:
        speedup, low, high = item.speedup, item.low, item.high
        if item.verdict != "correct" or speedup is None or low is None or high is None:
            continue
        if decide(Interval(speedup, low, high)) == "faster":
            found.append({"problem": problem, "speedup": speedup, "low": low, "high": high})
    return {"faster": len(found), "best": max(found, key=lambda row: row["low"], default=None)}


def _left_out(protocol: str, weak: Collection[str]) -> set[str]:
    return set(weak) if protocol == "strict" else set()


def _counted(
    turns: Sequence[Turn], protocol: str, left_out: set[str], unanswered: Collection[str]
) -> tuple[list[tuple[str, EvalSummary]], Grouped, list[str]]:
    """Return the judgements that count, their scores by problem, and problems without any."""
    judged = [
        (turn.ask.problem, item)
        for turn in turns
        for item in turn.judgements
        if item.protocol == protocol
    ]
    everything: Grouped = {}
    for problem, item in judged:
        score = score_of(item)
        if score is not None:
            everything.setdefault(problem, []).append(score)
    counted = {name: scores for name, scores in everything.items() if name not in left_out}
    lacking = sorted(set(unanswered) - left_out) if everything else []
    judged = [pair for pair in judged if pair[0] not in left_out]
    return judged, counted | {name: [] for name in lacking}, lacking


def _solved(scores: Sequence[Score]) -> list[bool]:
    """Return for each candidate of a problem whether it is correct; once `False` without any."""
    return [item.ok for item in scores] or [False]


def explained_by_run(
    runs: Mapping[str, Sequence[Turn]],
    protocols: Sequence[str],
    weak: Collection[str] = (),
    unanswered: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> dict[str, float]:
    """Return by protocol the part of the deviance of correctness that the run explains.

    Each run is a method of KernelBench-X (arXiv 2605.04956). The same scores count as in
    `summary_of`; `unanswered` is by run.
    """
    found = {}
    weak = weak_problems(turn for turns in runs.values() for turn in turns).union(weak)
    for protocol in protocols:
        pairs = [
            (ok, name)
            for name, turns in runs.items()
            for scores in _counted(
                last_of_trajectories(turn for turn in turns if turn.judgements),
                protocol,
                _left_out(protocol, weak),
                unanswered.get(name, ()),
            )[1].values()
            for ok in _solved(scores)
        ]
        if pairs:
            found[protocol] = metrics.explained_deviance(*zip(*pairs, strict=True))
    return found


def _numbers(by_problem: Grouped, resamples: int = 1000) -> dict[str, Any]:
    """Return the metrics of some problems; counts alone without any problem.

    Shares and means are over problems. Only the geometric means are over correct candidates.
    """
    groups = list(by_problem.values())
    if not groups:
        return {"judged": 0, "problems": 0}
    scores = [item for group in groups for item in group]
    samples = min((len(group) for group in groups if group), default=1)
    sizes = [k for k in SAMPLES if k <= samples]
    correct, timed = sum(s.ok for s in scores), sum(s.speedup is not None for s in scores)
    speeds = [[s.speedup for s in group if s.ok and s.speedup is not None] for group in groups]
    logs = _ends([[math.log(speed) for speed in group] for group in speeds], resamples)
    # Without times the speed-ups and the shares of fast candidates are unknown, not zero.
    untimed = metrics.untimed(scores)
    means, ratios = (
        [] if untimed else _of_problems(groups, partial(_speedup, metric))
        for metric in (metrics.mean_with_zeros, metrics.amsr)
    )
    return {
        "judged": len(scores),
        "problems": len(groups),
        "correct": correct,
        "correct_share": _mean(_of_problems(groups, lambda g: sum(s.ok for s in g) / len(g))),
        "timed": timed,
        "fast_p": [] if untimed else _fast(groups, resamples),
        "geometric_mean": metrics.geometric_mean(scores),
        "geometric_mean_faster": metrics.geometric_mean(scores, above=1.0),
        "mean_with_zeros": _mean(means),
        "amsr": _mean(ratios),
        "geometric_mean_95": logs and (math.exp(logs[0]), math.exp(logs[1])),
        "amsr_95": _interval([(ratio, 1) for ratio in ratios], resamples),
        "rejected": _mean(_of_problems(groups, metrics.rejected_share)),
        "samples": samples,
        "pass_at": {str(k): _mean(_of_problems(groups, partial(_pass_at, k))) for k in sizes},
        "fast_at": {
            str(k): _mean(_of_problems(groups, partial(_fast_at, k)))
            for k in ([] if untimed else sizes)
        },
    }


def _of_problems(
    groups: Sequence[Sequence[Score]], value: Callable[[Sequence[Score]], float | None]
) -> list[float]:
    """Return `value` of each problem's candidates; 0 for a problem without any.

    A problem for which it is `None` is left out.
    """
    found = [value(group) if group else 0.0 for group in groups]
    return [item for item in found if item is not None]


def _speedup(
    metric: Callable[[Sequence[Score]], float | None], group: Sequence[Score]
) -> float | None:
    """Return a mean speed-up of a problem; 0 if none was timed, and some are not correct."""
    found = metric(group)
    return 0.0 if found is None and not all(item.ok for item in group) else found


def _pass_at(k: int, group: Sequence[Score]) -> float:
    return metrics.pass_at_k(len(group), sum(item.ok for item in group), k)


def _fast_at(k: int, group: Sequence[Score]) -> float:
    return metrics.fast_at_k(group, 1.0, k)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _ends(values: list[list[float]], resamples: int) -> tuple[float, float] | None:
    return _interval([(math.fsum(group), len(group)) for group in values if group], resamples)


def _interval(sums: Sequence[tuple[float, int]], resamples: int) -> tuple[float, float] | None:
    # A single problem does not show how much problems differ.
    return metrics.bootstrap_interval(sums, resamples=resamples) if len(sums) > 1 else None


def _fast(groups: list[list[Score]], resamples: int) -> list[dict[str, float | None]]:
    counted = [metrics.fast_counts(group, THRESHOLDS) for group in groups]
    found: list[dict[str, float | None]] = []
    for place, p in enumerate(THRESHOLDS):
        row = [(counts[place], len(group)) for counts, group in zip(counted, groups, strict=True)]
        faster, at_least, believed = (
            [getattr(count, name) / size if size else 0.0 for count, size in row]
            for name in ("faster", "at_least", "believed")
        )
        low, high = _interval([(share, 1) for share in faster], resamples) or (None, None)
        found.append(
            {
                "p": p,
                "fast_p": _mean(faster),
                "low": low,
                "high": high,
                "at_least": _mean(at_least),
                "believed": _mean(believed),
            }
        )
    return found


def _flips(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Return the turns on which two protocols disagree, by a defect of the published rules."""
    found: list[dict[str, Any]] = []
    for turn in turns:
        judged = {i.protocol: i for i in turn.judgements if i.verdict != "unjudged"}
        says: dict[str, str] = {name: item.verdict for name, item in judged.items()}
        if len(set(says.values())) > 1:
            why = next((item.reason for item in judged.values() if item.verdict != "correct"), "")
            cause = cause_of(turn.ask.problem, judged["official"], judged["strict"])
            found.append({"ask": turn.ask.id, "verdicts": says, "cause": cause, "why": why})
    return found


def _kinds_of(flips: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    counts = Counter((tuple(flip["verdicts"].items()), flip["cause"]) for flip in flips)
    return [
        {"verdicts": dict(verdicts), "cause": cause, "count": count}
        for (verdicts, cause), count in counts.most_common()
    ]
