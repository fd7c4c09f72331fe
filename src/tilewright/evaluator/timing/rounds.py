"""Times all cases in process replicates: in a round the same processes time every case.

A call whose time varies more between processes than within one is timed in several process
replicates (`planned_replicates`), each with a part of the blocks. New processes cost as much as
the blocks that they time, so all cases share those of a round (ADR 53).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.pool import RunnerPool
from tilewright.evaluator.timing.blocks import CaseTimer
from tilewright.evaluator.timing.calibration import Calibration, planned_replicates
from tilewright.evaluator.timing.case_timings import CaseTimes
from tilewright.evaluator.timing.gpu_clock import measure_call_latency
from tilewright.evaluator.timing.replicate_policy import DEFAULT_POLICY, claims_difference
from tilewright.evaluator.timing.speedup import between_process_sigma, estimated_interval
from tilewright.evaluator.timing.stop_rule import MIN_BLOCKS_OF_REPLICATE
from tilewright.records import Case, TimingPlan

MAX_REPLICATE_FACTOR = 2
"""On a CPU at most this many times the planned replicates are made."""
WIDE_HALF_WIDTH = 0.03
"""On a CPU one more replicate is made while the interval's half-width exceeds this."""
TIME_FOR_MORE = 3.0
"""An unplanned round needs this many times as long as the last one took, or it is not made."""
HOST_REPLICATES = 4
"""Replicates on a device if the times include work of the host, whose cores differ. With one
replicate 7 of 20 such references differed from themselves (docs/measurements)."""


class Restart(Protocol):
    """Replaces all runners by other processes; with `fresh` by none that served a candidate."""

    def __call__(self, *, fresh: bool) -> None: ...


@dataclass
class PlannedCase:
    """A case, what timing it has shown, and the number of its planned replicates."""

    case: Case
    times: CaseTimes
    planned: int = 1

    @property
    def made(self) -> int:
        """Return the number of replicates that have timed it."""
        return len(self.times.replicate_starts)


@dataclass(frozen=True)
class Rounds:
    """Times the cases of a problem, `names` being the baselines and then `candidate`.

    Lifetime: the timing of one evaluation.
    """

    pool: RunnerPool
    calibration: Calibration
    names: list[str]
    restart: Restart | None
    plan: TimingPlan
    """The plan of one case; of several each has an equal part of the time."""
    no_more_at: float
    """Monotonic time after which no unplanned round begins."""
    claims_only_after: float = math.inf
    """The same where no interval excludes 1, on a GPU. Calls whose noise is the host's would
    otherwise take all replicates and all time, and show nothing."""

    @classmethod
    def of(
        cls,
        pool: RunnerPool,
        calibration: Calibration,
        names: list[str],
        restart: Restart | None,
        count: int,
    ) -> Rounds:
        """Return the rounds of so many cases."""
        plan, no_more_at = pool.context.request.timing, pool.deadline
        over_at = time.monotonic() + plan.max_problem_s * (len(names) - 1)
        if count > 1:
            part = {
                "max_s": min(plan.max_s, plan.max_problem_s / count),
                # The speed-up is a mean over the cases, whose noise is smaller.
                "min_blocks": max(
                    math.ceil(plan.min_blocks / math.sqrt(count)), MIN_BLOCKS_OF_REPLICATE
                ),
            }
            no_more_at = min(no_more_at, over_at)
            plan = plan.model_copy(update=part)
        return cls(pool, calibration, names, restart, plan, no_more_at, over_at)

    def time(self, cases: Sequence[Case]) -> list[CaseTimes]:
        """Time all cases; end with the first one on which the candidate is wrong."""
        on_device = self.pool.context.host.device.is_gpu
        planned = [
            PlannedCase(case, CaseTimes.of(case.name, self.names, on_device=on_device))
            for case in cases
        ]
        pending = planned
        while pending:
            begun = time.monotonic()
            for item in pending:
                self._time(item)
                if item.times.wrong:
                    known = planned[: planned.index(item) + 1]
                    return [each.times for each in known if each.made]
            took_s = time.monotonic() - begun
            pending = [item for item in pending if self._goes_on(item, took_s)]
            if pending and self.restart is not None:
                # An unplanned replicate must not share a cached baseline's process-to-process
                # variation.
                self.restart(fresh=any(item.made >= item.planned for item in pending))
        return [item.times for item in planned]

    def _goes_on(self, item: PlannedCase, took_s: float) -> bool:
        return self.restart is not None and self.needs_replicate(item, took_s)

    def _time(self, item: PlannedCase) -> None:
        """Time one replicate of a case in the present processes."""
        pool, times, first = self.pool, item.times, not item.made
        pool.context.emit("timing", {"case": item.case.name})
        timer = CaseTimer.of(pool, self.calibration, self.names, times, item.case, self.plan)
        steady_s = timer.make_ready()
        if first and self.restart is not None:
            item.planned = planned_replicates(
                steady_s * 1e6, times.moved_bytes, on_gpu=times.on_device
            )
            if times.on_device and has_prior_work(pool.runners["candidate"], item.planned):
                self.restart(fresh=False)
                timer.make_ready()
        timer.begin_replicate()
        if times.gpu.includes_host and self.restart is not None:
            item.planned = max(item.planned, HOST_REPLICATES)
        timer.time_replicate(item.planned)
        for name in self.names:
            pool.runners[name].allow_processes()
        if first and times.on_device and not times.wrong:
            measure_call_latency(pool, times, self.names, timer.sample)
        pool.judge.forget(timer.sample)

    def needs_replicate(self, item: PlannedCase, took_s: float) -> bool:
        """Tell whether one more replicate is to be timed; the last round took `took_s` seconds.

        On a device a process costs more than the blocks that it times. More replicates follow
        there if the difference may be process-to-process variation (ADR 42). On a CPU more follow
        while the interval is wide.
        """
        times, known = item.times, self.calibration
        if item.made < item.planned:
            return True
        now = time.monotonic()
        # No candidate fails because tilewright wants a narrower interval.
        if now > self.no_more_at or now + TIME_FOR_MORE * took_s > self.pool.deadline:
            return False
        if times.on_device:
            sigmas = {name: between_process_sigma(times, name, known) for name in self.names[:-1]}
            return any(
                DEFAULT_POLICY.needs_replicate(
                    times, name, sigma, item.planned, self.plan.extra_replicates
                )
                and (now <= self.claims_only_after or claims_difference(times, name, sigma))
                for name, sigma in sigmas.items()
            )
        if item.planned == 1 or item.made >= MAX_REPLICATE_FACTOR * item.planned:
            return False
        sigma = between_process_sigma(times, self.names[0], known)
        found = [estimated_interval(times, name, sigma) for name in self.names[:-1]]
        return max(math.log(one.high / one.low) / 2 for one in found) > WIDE_HALF_WIDTH


def time_cases(
    pool: RunnerPool,
    calibration: Calibration,
    cases: Sequence[Case],
    names: list[str],
    restart: Restart | None = None,
) -> list[CaseTimes]:
    """Time `names` (baselines first, `candidate` last) on cases until each interval is narrow.

    More replicates than planned follow if these disagree or may be noise; `restart` starts other
    processes for a round.
    """
    return Rounds.of(pool, calibration, names, restart, len(cases)).time(cases)


def has_prior_work(runner: Runner, planned: int) -> bool:
    """Tell whether a candidate's process did work before that shows in its times."""
    # Calls that need several replicates are so short that earlier calls show in them (ADR 42).
    return runner.profiled or (planned > 1 and runner.judged)
