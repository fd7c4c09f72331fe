"""The supervisor frees memory of a GPU before an evaluation, and repeats it alone if it ran out.

Evaluations on one device run one after another, under its lease. Their memory is taken by what
other supervisors keep for later: judges, cached baselines and preforked children.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from tilewright.errors import InfrastructureError
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
from tilewright.evaluator.runners.pool import SLOTS

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
