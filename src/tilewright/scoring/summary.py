"""From turns to the numbers of a run: counts, fast_p and its relatives, groups, flips. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from tilewright.records import Protocol
from tilewright.records.events import EvalSummary, Turn
from tilewright.scoring import metrics
from tilewright.scoring.benchmarks.drkernel import drkernel
from tilewright.scoring.benchmarks.kernelbench_x import call_and_execute
from tilewright.scoring.metrics import Score
from tilewright.scoring.protocol_differences import cause_of, kind_of

__all__ = ["THRESHOLDS", "explained_by_run", "flips_of", "group_of", "score_of", "summary_of"]

THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0)
"""KernelBench's and Dr. Kernel's together."""
SAMPLES = (1, 2, 4, 8)
"""Numbers of samples k for which pass@k and fast@k are reported."""
NO_ANSWER = Score(ok=False)
Grouped = dict[str, list[Score]]


def score_of(item: EvalSummary) -> Score | None:
    """Return what counts of a judgement; `None`: it was not judged, so it is left out."""
    if item.verdict == "unjudged":
        return None
    rejected = item.verdict == "rejected"
    return Score(item.verdict == "correct", item.speedup, item.low, rejected=rejected)


@lru_cache(maxsize=10_000)
def group_of(problem: str) -> str:
    """Return the level or category in a problem's id; empty where it has none."""
    parts = problem.split("/")
    if len(parts) > 2:
        return parts[1]
    level = re.match(r"(level\d+)-\d+$", parts[-1])
    return level[1] if level else ""


def summary_of(
    turns: Sequence[Turn], weak: Collection[str] = (), unanswered: Collection[str] = ()
) -> dict[str, Any]:
    """Return the numbers of a run as one JSON document, by protocol.

    Problems in `weak` count under published rules and not strictly: an answer that does no work
    passes on them. Those that are `unanswered`, for which there is no candidate, are not correct:
    a share is of every task.
    """
    protocols = dict.fromkeys(item.protocol for turn in turns for item in turn.judgements)
    last = _last_of_trajectories(turns)
    flips = flips_of(turns)
    return {
        "candidates": len(turns),
        "problems": len({turn.ask.problem for turn in turns}),
        "unanswered": len(unanswered),
        "protocols": {name: _of_protocol(last, name, weak, unanswered) for name in protocols},
        "drkernel": drkernel(turns),
        "flips": flips,
        "flip_kinds": _kinds_of(flips),
    }


def _last_of_trajectories(turns: Sequence[Turn]) -> list[Turn]:
    """Return the last judged turn of each trajectory: those before are no samples of their own."""
    last: dict[tuple[str, int], Turn] = {}
    for turn in turns:
        if not turn.judgements:
            continue
        key = (turn.ask.problem, turn.ask.sample)
        if key not in last or turn.ask.turn >= last[key].ask.turn:
            last[key] = turn
    return list(last.values())


def _of_protocol(
    turns: Sequence[Turn], protocol: Protocol, weak: Collection[str], unanswered: Collection[str]
) -> dict[str, Any]:
    left_out = _left_out(protocol, weak)
    everything = _judged_by(turns, protocol)
    by_problem, lacking = _counted(everything, left_out, unanswered)
    judged = [pair for pair in everything if pair[0] not in left_out]
    groups = sorted({group_of(problem) for problem in by_problem} - {""})
    found = {
        "verdicts": dict(Counter(item.verdict for _, item in judged)),
        "kinds": {
            f"{verdict}: {kind}": count
            for (verdict, kind), count in Counter(
                (item.verdict, kind_of(item)) for _, item in judged if item.verdict != "correct"
            ).items()
            if kind
        },
        "labels": dict(Counter(name for _, item in judged for name in item.labels)),
        "findings": dict(Counter(name for _, item in judged for name in item.findings)),
        "weak_left_out": len(left_out & {turn.ask.problem for turn in turns}.union(unanswered)),
        "unanswered": len(lacking),
        **_numbers(by_problem),
    }
    nothing = EvalSummary(protocol=protocol, verdict="failed", reason="no_candidate")
    tasks = [*judged, *((problem, nothing) for problem in lacking)]
    if protocol == "official" and (published := call_and_execute(tasks)):
        found["published"] = published
    if len(groups) > 1:
        parts = {name: _part(by_problem, name) for name in groups}
        found["groups"] = {name: _numbers(part, draws=200) for name, part in parts.items()}
        pairs = [(item.ok, group_of(p)) for p, scores in by_problem.items() for item in scores]
        outcomes, names = zip(*pairs, strict=True)
        found["explained_by_group"] = metrics.explained_deviance(outcomes, names)
    return found


def _left_out(protocol: str, weak: Collection[str]) -> set[str]:
    return set(weak) if protocol == "strict" else set()


def _judged_by(turns: Sequence[Turn], protocol: str) -> list[tuple[str, EvalSummary]]:
    return [
        (turn.ask.problem, item)
        for turn in turns
        for item in turn.judgements
        if item.protocol == protocol
    ]


def _counted(
    judged: Sequence[tuple[str, EvalSummary]], left_out: set[str], unanswered: Collection[str]
) -> tuple[Grouped, list[str]]:
    """Return the scores that count, by problem, and the problems that lack a candidate of them."""
    everything: Grouped = {}
    for problem, item in judged:
        score = score_of(item)
        if score is not None:
            everything.setdefault(problem, []).append(score)
    counted = {name: scores for name, scores in everything.items() if name not in left_out}
    lacking = sorted(set(unanswered) - left_out) if everything else []
    # As often as others were answered, so that what is said of k samples still can be.
    samples = min(map(len, (counted or everything).values()), default=0)
    return counted | {name: [NO_ANSWER] * samples for name in lacking}, lacking


def explained_by_run(
    runs: Mapping[str, Sequence[Turn]],
    protocols: Sequence[str],
    weak: Collection[str] = (),
    unanswered: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> dict[str, float]:
    """Return by protocol what part of the deviance of what is correct hangs on whose it is.

    The explained deviance of methods in KernelBench-X (arXiv 2605.04956), a method being a run.
    What counts is what does in `summary_of`; `unanswered` is by run.
    """
    found = {}
    for protocol in protocols:
        pairs = [
            (score.ok, name)
            for name, turns in runs.items()
            for scores in _counted(
                _judged_by(_last_of_trajectories(turns), protocol),
                _left_out(protocol, weak),
                unanswered.get(name, ()),
            )[0].values()
            for score in scores
        ]
        if pairs:
            outcomes, names = zip(*pairs, strict=True)
            found[protocol] = metrics.explained_deviance(outcomes, names)
    return found


def _part(by_problem: Grouped, group: str) -> Grouped:
    return {name: scores for name, scores in by_problem.items() if group_of(name) == group}


def _numbers(by_problem: Grouped, draws: int = 1000) -> dict[str, Any]:
    """Return the metrics of some problems; nothing where nothing was judged."""
    groups = list(by_problem.values())
    scores = [item for group in groups for item in group]
    if not scores:
        return {"judged": 0, "counted": 0}
    samples = min(len(group) for group in groups)
    sizes = [k for k in SAMPLES if k <= samples]
    correct, timed = sum(s.ok for s in scores), sum(s.speedup is not None for s in scores)
    # Of what is right and was not timed nobody knows how fast it is: no share is 0 for that.
    untimed = bool(correct) and not timed
    return {
        "judged": sum(item is not NO_ANSWER for item in scores),
        "counted": len(scores),
        "correct": correct,
        "timed": timed,
        "fast_p": [] if untimed else _fast(groups, draws),
        "geometric_mean": metrics.geometric_mean(scores),
        "geometric_mean_faster": metrics.geometric_mean(scores, above=1.0),
        "mean_with_zeros": metrics.mean_with_zeros(scores),
        "amsr": metrics.amsr(scores),
        "geometric_mean_95": _logarithmic(groups, draws),
        "amsr_95": _ends(metrics.amsr_values(groups), draws),
        "rejected": metrics.rejected_share(scores),
        "samples": samples,
        "pass_at": {
            str(k): sum(metrics.pass_at_k(len(g), sum(s.ok for s in g), k) for g in groups)
            / len(groups)
            for k in sizes
        },
        "fast_at": {
            str(k): sum(metrics.fast_at_k(g, 1.0, k) for g in groups) / len(groups)
            for k in ([] if untimed else sizes)
        },
    }


def _logarithmic(groups: list[list[Score]], draws: int) -> tuple[float, float] | None:
    """Return the interval of the geometric mean over what is right."""
    speeds = [[s.speedup for s in group if s.ok and s.speedup is not None] for group in groups]
    ends = _ends([[math.log(speed) for speed in group] for group in speeds], draws)
    return None if ends is None else (math.exp(ends[0]), math.exp(ends[1]))


def _ends(values: list[list[float]], draws: int) -> tuple[float, float] | None:
    """Return the interval of a mean over samples, by problem; one problem says nothing of it."""
    sums = [(math.fsum(group), len(group)) for group in values if group]
    return metrics.bootstrap_interval(sums, draws=draws) if len(sums) > 1 else None


def _fast(groups: list[list[Score]], draws: int) -> list[dict[str, float | None]]:
    counted = [metrics.fast_counts(group, THRESHOLDS) for group in groups]
    total = sum(map(len, groups))
    found: list[dict[str, float | None]] = []
    for place, p in enumerate(THRESHOLDS):
        row = [counts[place] for counts in counted]
        shares = [(float(c.faster), len(group)) for c, group in zip(row, groups, strict=True)]
        # One problem says nothing of how much problems differ.
        ends = metrics.bootstrap_interval(shares, draws=draws) if len(groups) > 1 else (None, None)
        found.append(
            {
                "p": p,
                "fast_p": sum(item.faster for item in row) / total,
                "low": ends[0],
                "high": ends[1],
                "at_least": sum(item.at_least for item in row) / total,
                "believed": sum(item.believed for item in row) / total,
            }
        )
    return found


def flips_of(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Return the turns on which two protocols disagree, by which defect, and what one of them says.

    The defect is one of the published rules; `why` is the reason of the verdict that is a no.
    """
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
    """Return how many flips there are of each kind and cause, the most frequent first."""
    counts = Counter((tuple(flip["verdicts"].items()), flip["cause"]) for flip in flips)
    return [
        {"verdicts": dict(verdicts), "cause": cause, "count": count}
        for (verdicts, cause), count in counts.most_common()
    ]
