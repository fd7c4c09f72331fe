"""What candidates are timed against: a side for each baseline, kept for its problem on a GPU.

A context on a device takes long to make, and what is compiled longer still. A baseline that is the
problem's own reference is nobody's candidate: it idles beside its problem's judge, and is the
baseline of the next candidate too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.errors import InfrastructureError, ProblemError, TilewrightError
from tilewright.evaluator.evaluation import Evaluation
from tilewright.evaluator.sides import Ended
from tilewright.evaluator.weights import match_weights, publish_weights
from tilewright.records import Candidate

__all__ = [
    "baseline_failed",
    "blamed_on_baseline",
    "keep_baselines",
    "open_again",
    "open_baselines",
    "put_away",
    "reference_candidate",
]


def open_baselines(evaluation: Evaluation, *, fresh: bool = False) -> None:
    """Open a side for each baseline that has none, or take one that was kept, unless `fresh`."""
    for baseline in evaluation.request.baselines:
        if baseline.name in evaluation.sides:
            continue
        candidate = baseline.candidate or reference_candidate(evaluation)
        with blamed_on_baseline(evaluation, baseline.name):
            if fresh or not evaluation.take_parked(baseline.name):
                open_again(evaluation, baseline.name, candidate)
            elif evaluation.has_weights:
                match_weights(evaluation, baseline.name)
                publish_weights(evaluation, baseline.name)


def put_away(evaluation: Evaluation, names: list[str], *, keep: bool) -> None:
    """End the sides of `names`; if asked, those that can be kept are set aside instead.

    On a device as many contestants are made ready for what comes in their place.
    """
    for name in _kept(evaluation, names) if keep else []:
        evaluation.park(name)
    ending = [name for name in names if name in evaluation.sides]
    for name in ending:
        evaluation.note_printed(name)
        evaluation.sides[name].child.doom()
    host = evaluation.host
    ahead = host.device.is_gpu and not evaluation.several_streams
    if ahead:
        host.fork_contestants(evaluation.request.limits, len(ending))
    for name in ending:
        evaluation.close_side(name)
    if ahead:
        host.open_contestants()


def keep_baselines(evaluation: Evaluation) -> None:
    """Set aside the baselines that the next candidate of this problem can be timed against."""
    for name in _kept(evaluation, list(evaluation.sides)):
        evaluation.park(name)


def _kept(evaluation: Evaluation, names: list[str]) -> list[str]:
    """Return which sides are the problem's own reference on a device."""
    if not evaluation.host.device.is_gpu:
        return []
    own = {item.name for item in evaluation.request.baselines if item.candidate is None}
    return [name for name in names if name in own]


def open_again(evaluation: Evaluation, name: str, candidate: Candidate) -> None:
    """Open a side with the weights that are loaded already."""
    evaluation.open_side(name, candidate)
    if evaluation.has_weights:
        match_weights(evaluation, name)
        publish_weights(evaluation, name)


@contextmanager
def blamed_on_baseline(evaluation: Evaluation, name: str) -> Iterator[None]:
    """Turn a failure inside into a problem's: for a baseline no candidate can be blamed."""
    try:
        yield
    except Ended as ended:
        raise baseline_failed(evaluation, name, ended) from ended


def baseline_failed(evaluation: Evaluation, name: str, ended: Ended) -> TilewrightError:
    """Return what to raise for a baseline that ended.

    It is tried again, fresh, if it was kept, or lacked device memory beside processes that idle.
    """
    message, host = getattr(ended.outcome, "message", ""), evaluation.host
    lacked = getattr(ended.outcome, "reason", "") == "out of memory"
    ours = ended.kept or (lacked and host.device.is_gpu and host.end_idle())
    kind = InfrastructureError if ours else ProblemError
    return kind(f"baseline {name!r} {ended.outcome.verdict}: {message}")


def reference_candidate(evaluation: Evaluation) -> Candidate:
    """Return the problem's own reference as something that a contestant can load."""
    problem = evaluation.request.problem
    entry = "Model" if problem.kind == "module" else "reference"
    return Candidate(language="torch", files=(problem.source,), entry=entry)
