"""What candidates are timed against: a side for each baseline, kept for its problem on a GPU.

A context on a device takes long to make, and what is compiled longer still. A baseline that is the
problem's own reference is nobody's candidate: it idles beside its problem's judge, and is the
baseline of the next candidate too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.errors import InfrastructureError, ProblemError, TilewrightError
from tilewright.evaluator.judge_client.weights import match_weights, publish_weights
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.runners.ended import EvaluationEnded
from tilewright.records import Candidate

__all__ = [
    "attribute_to_baseline",
    "baseline_failed",
    "cache_baselines",
    "open_baselines",
    "reference_candidate",
    "restart_runner",
    "stop_or_cache",
]


def open_baselines(session: EvaluationSession, *, fresh: bool = False) -> None:
    """Open a side for each baseline that has none, or take one that was kept, unless `fresh`."""
    for baseline in session.request.baselines:
        if baseline.name in session.runners:
            continue
        candidate = baseline.candidate or reference_candidate(session)
        with attribute_to_baseline(session, baseline.name):
            if fresh or not session.acquire_from_cache(baseline.name):
                restart_runner(session, baseline.name, candidate)
            elif session.has_weights:
                match_weights(session, baseline.name)
                publish_weights(session, baseline.name)


def stop_or_cache(session: EvaluationSession, names: list[str], *, keep: bool) -> None:
    """End the sides of `names`; if asked, those that can be kept are set aside instead.

    On a device as many contestants are made ready for what comes in their place.
    """
    for name in _kept(session, names) if keep else []:
        session.release_to_cache(name)
    ending = [name for name in names if name in session.runners]
    for name in ending:
        session.record_output(name)
        session.runners[name].child.kill_async()
    host = session.host
    ahead = host.device.is_gpu and not session.several_streams
    if ahead:
        host.fork_runners(session.request.limits, len(ending))
    for name in ending:
        session.stop_runner(name)
    if ahead:
        host.open_runners()


def cache_baselines(session: EvaluationSession) -> None:
    """Set aside the baselines that the next candidate of this problem can be timed against."""
    for name in _kept(session, list(session.runners)):
        session.release_to_cache(name)


def _kept(session: EvaluationSession, names: list[str]) -> list[str]:
    """Return which sides are the problem's own reference on a device."""
    if not session.host.device.is_gpu:
        return []
    own = {item.name for item in session.request.baselines if item.candidate is None}
    return [name for name in names if name in own]


def restart_runner(session: EvaluationSession, name: str, candidate: Candidate) -> None:
    """Open a side with the weights that are loaded already."""
    session.start_runner(name, candidate)
    if session.has_weights:
        match_weights(session, name)
        publish_weights(session, name)


@contextmanager
def attribute_to_baseline(session: EvaluationSession, name: str) -> Iterator[None]:
    """Turn a failure inside into a problem's: for a baseline no candidate can be blamed."""
    try:
        yield
    except EvaluationEnded as ended:
        raise baseline_failed(session, name, ended) from ended


def baseline_failed(
    session: EvaluationSession, name: str, ended: EvaluationEnded
) -> TilewrightError:
    """Return what to raise for a baseline that ended.

    It is tried again, fresh, if it was kept, or lacked device memory beside processes that idle.
    """
    message, host = getattr(ended.outcome, "message", ""), session.host
    lacked = getattr(ended.outcome, "reason", "") == "out_of_memory"
    ours = ended.kept or (lacked and host.device.is_gpu and host.end_idle())
    kind = InfrastructureError if ours else ProblemError
    return kind(f"baseline {name!r} {ended.outcome.verdict}: {message}")


def reference_candidate(session: EvaluationSession) -> Candidate:
    """Return the problem's own reference as something that a contestant can load."""
    problem = session.request.problem
    entry = "Model" if problem.kind == "module" else "reference"
    return Candidate(language="torch", files=(problem.source,), entry=entry)
