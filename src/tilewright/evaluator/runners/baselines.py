"""The baselines of an evaluation: runners to time against, cached for their problem on a GPU.

A GPU context takes long to create. A baseline that is the problem's own reference holds no code of
a candidate, so it stays in a cache with its problem's judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.errors import (
    BaselineOutOfMemory,
    InfrastructureError,
    ProblemError,
    TilewrightError,
)
from tilewright.evaluator.context import EvaluationContext
from tilewright.evaluator.processes.memory_ledger import DeviceCrowded
from tilewright.evaluator.runners.messages import EvaluationEnded, is_out_of_device_memory
from tilewright.evaluator.runners.pool import RunnerPool
from tilewright.records import Candidate, Problem
from tilewright.records.request import COMPILE_MODES


def start_baselines(pool: RunnerPool, *, fresh: bool = False) -> None:
    """Start a runner for each baseline that has none, or take a cached one unless `fresh`."""
    reference = reference_of(pool.context.request.problem)
    for baseline in pool.context.request.baselines:
        if baseline.name in pool.runners:
            continue
        with attribute_to_baseline(pool.context, baseline.name):
            if fresh or not pool.acquire_from_cache(baseline.name):
                pool.start(baseline.name, baseline.candidate or reference)
            pool.match_and_publish(baseline.name)


def reference_of(problem: Problem, language: str = "torch") -> Candidate:
    """Return the problem's reference as an implementation."""
    entry = "Model" if problem.kind == "module" else "reference"
    return Candidate(language=language, files=(problem.source,), entry=entry)


def replace_runners(pool: RunnerPool, *, fresh: bool) -> None:
    """Replace baselines and candidate by other processes, for one more process replicate.

    With `fresh` no process is used that has served an earlier candidate.
    """
    names = [baseline.name for baseline in pool.context.request.baselines]
    # To compile a baseline again would take longer than all the rest, so it stays.
    staying = COMPILE_MODES if fresh else ()
    leaving = {*names, "candidate"}.intersection(pool.runners).difference(staying)
    pool.stop_or_cache(sorted(leaving), keep=not fresh)
    start_baselines(pool, fresh=fresh)
    pool.start("candidate", pool.context.request.candidate)
    pool.match_and_publish("candidate")


@contextmanager
def attribute_to_baseline(context: EvaluationContext, name: str) -> Iterator[None]:
    """Turn a failure inside into the problem's: a candidate is not responsible for a baseline."""
    try:
        yield
    except EvaluationEnded as ended:
        raise baseline_failed(context, name, ended) from ended


def baseline_failed(
    context: EvaluationContext, name: str, ended: EvaluationEnded
) -> TilewrightError:
    """Return what to raise for a baseline that ended.

    The evaluation is repeated with a fresh one if it was cached or could not be stopped in time.
    It is repeated alone if it lacked device memory while others held some.
    """
    outcome = ended.outcome
    lacked = is_out_of_device_memory(outcome)
    message = f"baseline {name!r} {outcome.verdict}: {getattr(outcome, 'message', '')}"
    if lacked and context.host.shares_memory:
        return DeviceCrowded(message)
    if ended.repeatable:
        return InfrastructureError(message)
    return (BaselineOutOfMemory if lacked else ProblemError)(message)
