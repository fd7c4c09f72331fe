"""Which kernels a call launches, and how much of its time are the candidate's own ones."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.runners.gpu_runner import GpuRunner
from tilewright.evaluator.timing.clocks import clock_of
from tilewright.evaluator.timing.gpu_clock import measure_own_kernel_time
from tilewright.records import Case
from tilewright.scoring import bootstrap

__all__ = ["PROFILED_CALLS", "OwnCalls", "profile_own_kernels", "trace_kernels"]

PROFILED_CALLS = 5
"""Calls whose median is a profile's figure: the noise of a share is far below what it decides."""


@dataclass(frozen=True)
class OwnCalls:
    """A candidate's calls on a device, with and without events around its own launches."""

    share: float
    """Share of the call's time between the events around its own launches."""
    launches: int
    call_s: float
    """Device time of a call without events, in seconds."""


def trace_kernels(session: EvaluationSession) -> None:
    """List the kernels of one call by the candidate's own profiler, if asked for; none on a CPU.

    Raises:
        EvaluationEnded: the candidate failed.
    """
    if not session.request.trace:
        return
    with session.stage("trace"):
        runner = session.runners.runners["candidate"]
        if not isinstance(runner, GpuRunner):
            return
        runner.profiled = True
        sample = session.judge.sample(session.request.problem.cases[-1], "nominal", 52)
        session.runners.reserve_inputs(runner, sample.slot_bytes)
        session.runners.publish(runner, sample, 0)
        # The first use of the profiler takes seconds.
        timeout_s = session.request.limits.load_s
        session.observations.kernels += runner.traced(sample.call_fields(0), timeout_s)
        session.judge.forget(sample)


def profile_own_kernels(session: EvaluationSession, case: Case) -> OwnCalls | None:
    """Call with and without events around the candidate's own launches; `None` on a CPU.

    Raises:
        EvaluationEnded: the candidate failed.
    """
    pool = session.runners
    runner = pool.runners["candidate"]
    if not isinstance(runner, GpuRunner):
        return None
    sample = session.judge.sample(case, "nominal", 51)
    pool.reserve_inputs(runner, sample.slot_bytes)
    clock = clock_of(session.host.device)
    calls = [measure_own_kernel_time(pool, runner, sample) for _ in range(PROFILED_CALLS)]
    call_s = bootstrap.median(
        [clock.warm_up(pool, runner, sample, 0) for _ in range(PROFILED_CALLS)]
    )
    session.judge.forget(sample)
    share = min(bootstrap.median([call.seconds for call in calls]) / call_s, 1.0)
    return OwnCalls(share, calls[-1].launches, call_s)
