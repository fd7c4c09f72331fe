"""The supervisor frees memory of a GPU before an evaluation, and repeats it alone if it ran out.

Evaluations on one device run one after another, under its lease. Their memory is taken by what
other supervisors keep for later: judges, cached baselines and preforked children.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from tilewright.errors import BaselineOutOfMemory, InfrastructureError, ProblemOutOfMemory
from tilewright.evaluator.devices.device_memory import (
    CONTEXT_BYTES,
    choose_holders,
    known_need,
    record_need,
    shortage,
)
from tilewright.evaluator.devices.nvml import Conditions, conditions
from tilewright.evaluator.devices.recorded_environment import device_key
from tilewright.evaluator.judge_client.gpu_messages import CaseMeasured
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.pipeline.strangers import (
    OTHER_PROGRAM_BYTES,
    label_strangers,
    note_strangers,
)
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.processes.idle import MAX_CACHED_RUNNERS
from tilewright.evaluator.processes.memory_ledger import DeviceCrowded
from tilewright.evaluator.runners.messages import is_out_of_device_memory
from tilewright.evaluator.runners.pool import SLOTS
from tilewright.records import Correct, Failed, Incorrect, Outcome, Unjudged
from tilewright.records.codes import FailureReason, Stage, UnjudgedReason

ROOM_S = 10.0
"""Seconds that other supervisors have to release memory before an evaluation starts without it."""
ALONE_S = 120.0
"""Seconds that they have before an evaluation that must be alone ends without a verdict. One that
evaluates on another device answers after that evaluation."""
FREED_S, FREED_POLL_S = 5.0, 0.1
"""Most seconds until the driver has freed the memory of ended processes, and between two looks."""
STEADY_LOOKS = 4
"""Looks in a row that show the same use: processes that were just killed have freed nothing yet.
Where all idle processes have ended, it waits until little memory is in use, or for `FREED_S`."""
SAMPLE_OUTPUTS = 11
"""Memory of an input sample, as a multiple of its outputs (tests/unit/evaluator/judge)."""
DOUBLE = 3
"""Memory of a call in float32 and in float64, as a multiple of the one in float32."""
HELD_SAMPLES = 4
"""Input samples whose inputs the judge holds at once."""
MAX_USE = 2
"""The largest use that is stored, as a multiple of the estimate. A candidate may take all that it
can get, which is not the problem's need."""


def admit(session: EvaluationSession, details: list[str]) -> None:
    """Make room for what the evaluation is known to need, or for it alone; label strangers.

    The session holds the lease. `details` are those of the stage.
    """
    host, reason = session.host, session.context.alone_reason
    if host.ledger is None:
        return
    if reason is not None:
        details.append(f"repeated alone on the device: {reason}")
        with session.uncounted():
            end_all_idle(host, session.context.watch)
    _note_start(session, session.record_conditions("before"))
    key = device_key(host.cores, host.device)
    need = known_need(host.home, key, session.request.problem.digest())
    if need is not None:
        session.memory.known = True
        _make_room(session, need)
    label_strangers(session)


def _note_start(session: EvaluationSession, found: Conditions | None) -> None:
    host, memory = session.host, session.memory
    idle = host.prepared or host.idle_judges.get(session.idle_key())
    memory.before, memory.own_bytes = found, 0 if idle is None else idle.held_bytes
    used = (found.used_bytes if found else None) or 0
    memory.others_bytes = max(used - host.held_bytes, 0)
    note_strangers(session, used)


def has_room(session: EvaluationSession) -> bool:
    """Tell whether the known need of the problem is free now; an unknown need counts as small."""
    host = session.host
    key = device_key(host.cores, host.device)
    need = known_need(host.home, key, session.request.problem.digest())
    return need is None or not shortage(need, 0, conditions(host.device.uuid))


def estimate_need(session: EvaluationSession, sizes: list[CaseMeasured]) -> None:
    """Estimate the memory that the evaluation needs, from the sizes that the judge has measured."""
    pool, memory = session.runners, session.memory
    work = pool.output_bytes + pool.allocator_bytes
    runners = 1 + MAX_CACHED_RUNNERS * len(session.request.baselines)
    memory.estimated_bytes = max((estimated_need(one, work, runners) for one in sizes), default=0)
    memory.judge_bytes = CONTEXT_BYTES + max((one.weights for one in sizes), default=0)


def admit_estimated(session: EvaluationSession) -> None:
    """Make room for the estimated need, where no earlier evaluation told the need."""
    if not session.memory.known:
        _make_room(session, session.memory.estimated_bytes)


def estimated_need(found: CaseMeasured, work_bytes: int, runners: int) -> int:
    """Estimate the device memory of judge and runners on a case.

    `work_bytes` is the block that the judge shares with each runner for its outputs and its
    allocations.
    """
    runner = CONTEXT_BYTES + work_bytes + found.weights
    judge = (
        CONTEXT_BYTES
        + (SLOTS + HELD_SAMPLES) * found.inputs
        + DOUBLE * (found.inputs + found.weights + (found.peak or 0))
        + SAMPLE_OUTPUTS * found.outputs
    )
    return judge + runners * runner


def _make_room(session: EvaluationSession, need_bytes: int) -> None:
    """End what idles for the missing bytes: our own first, then that of other supervisors."""
    host, memory = session.host, session.memory
    lacking = shortage(need_bytes, memory.own_bytes, memory.before)
    if lacking <= 0 or host.ledger is None:
        return
    lacking -= host.evict(lacking, session.idle_key())
    held = host.ledger.others()
    chosen = choose_holders(held, lacking)
    if chosen:
        with session.uncounted():
            silent = host.request_release(chosen, ROOM_S, session.context.watch)
            _wait_freed(host, STEADY_LOOKS)
        freed = sum(held[name] for name in chosen if name not in silent)
        memory.others_bytes = max(memory.others_bytes - freed, 0)


def end_all_idle(host: DeviceHost, watch: Callable[[], None]) -> None:
    """End all idle processes on the device, ours and those of other supervisors; hold the lease.

    Raises:
        InfrastructureError: another supervisor does not answer.
    """
    host.end_idle()
    if host.ledger is None:
        return
    # All are asked, because one without memory may be about to prefork.
    silent = host.request_release(list(host.ledger.others()), ALONE_S, watch)
    if silent:
        raise InfrastructureError(
            f"{host.device.name} lacked memory, and {len(silent)} other supervisors kept theirs "
            f"for {ALONE_S:g} s: processes {', '.join(name.split('-')[0] for name in silent)}"
        )
    # The driver may free the contexts of many processes later than their memory.
    _wait_freed(host, math.inf)


def _wait_freed(host: DeviceHost, steady_looks: float) -> None:
    """Wait until the memory of processes that have ended is free, or its use stays the same."""
    limit, last, same = time.monotonic() + FREED_S, -1, 0
    while time.monotonic() < limit:
        found = conditions(host.device.uuid)
        used = found.used_bytes if found else None
        same = same + 1 if used == last else 1
        if used is None or same >= steady_looks or used < OTHER_PROGRAM_BYTES:
            return
        last = used
        time.sleep(FREED_POLL_S)


def note_use(session: EvaluationSession, found: Conditions | None) -> None:
    """Store what the evaluation uses now, as the need of its problem."""
    host, memory = session.host, session.memory
    used = memory.used_by_evaluation(found, host.held_bytes)
    if used is not None:
        key = device_key(host.cores, host.device)
        used = min(used, MAX_USE * memory.estimated_bytes)
        record_need(host.home, key, session.request.problem.digest(), used)


def attribute_out_of_memory(session: EvaluationSession, outcome: Outcome) -> Outcome:
    """Return the outcome, unless memory may be missing because others hold some.

    Raises:
        DeviceCrowded: idle processes of this user do; the evaluation is to be repeated alone.
    """
    # Before the lease an evaluation needs no memory of the device.
    if not is_out_of_device_memory(outcome) or not session.host.leased:
        return outcome
    assert isinstance(outcome, Failed)
    if session.host.shares_memory:
        raise DeviceCrowded(f"it ran out of memory while others held some: {outcome.message[:200]}")
    return unjudged_by_other_programs(session, outcome.message) or outcome


def unjudged_by_other_programs(session: EvaluationSession, message: str) -> Unjudged | None:
    """Return `unjudged` if other programs leave less memory than the evaluation needs.

    `message` describes the allocation that failed.
    """
    memory = session.memory
    total = memory.before.total_bytes if memory.before else None
    if total is None or memory.stranger_bytes <= OTHER_PROGRAM_BYTES:
        return None
    # Alone it would have had more; nobody can end another program.
    text = (
        f"out of memory while other programs held {memory.stranger_bytes >> 20} MiB of the device"
    )
    # Where the judge lacked memory before it had measured the problem, nobody knows the need.
    if memory.estimated_bytes:
        # No release makes a device larger.
        missing = min(memory.estimated_bytes, total) - (total - memory.stranger_bytes)
        if missing <= 0:
            return None
        text = f"{text}, {missing >> 20} MiB more than the problem leaves"
    return Unjudged(reason=UnjudgedReason.DEVICE_SHARED, message=f"{text}: {message[:200]}")


def outcome_of_shortage(
    session: EvaluationSession, error: ProblemOutOfMemory
) -> Unjudged | Failed | None:
    """Return how an evaluation ends whose judge or baseline ran out of device memory.

    `None`: the problem or the baseline needs more than the device has, or the candidate has not
    started. If the need of judge and runners fits the device, the candidate has taken the memory
    that the judge lacks. The need of a baseline is not known, so it blames no candidate.
    """
    memory, message = session.memory, str(error)
    unjudged = unjudged_by_other_programs(session, message)
    if unjudged is not None or isinstance(error, BaselineOutOfMemory):
        return unjudged
    total = memory.before.total_bytes if memory.before else None
    fits = total is not None and 0 < memory.estimated_bytes <= total
    loaded = any(stage.name == Stage.LOAD for stage in session.observations.stages)
    if total is None or not fits or not loaded:
        return None
    text = (
        f"{message[:200]}; the evaluation needs about {memory.estimated_bytes >> 20} of "
        f"{total >> 20} MiB, so that the candidate held too much"
    )
    reason = FailureReason.OUT_OF_MEMORY
    return Failed(stage=Stage.CORRECTNESS, reason=reason, message=text)


def attribute_weak_oracle(session: EvaluationSession, outcome: Outcome) -> Outcome:
    """Return the outcome, unless the judge ran out of memory for its float64 oracle.

    Without the oracle other tolerances hold, and timed calls are compared by fewer rules. A
    candidate that takes memory could choose that. If the problem needs more than the device has,
    the comparison in float32 decides.
    """
    decided = isinstance(outcome, Correct | Incorrect)
    if not session.judge.ran_out_of_memory or not decided:
        return outcome
    error = ProblemOutOfMemory("the judge ran out of device memory for its float64 oracle")
    return outcome_of_shortage(session, error) or outcome
