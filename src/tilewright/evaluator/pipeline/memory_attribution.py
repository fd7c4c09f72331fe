"""Device memory that ran out in an evaluation: whose doing it is, and which outcome follows."""

from __future__ import annotations

from tilewright.errors import BaselineOutOfMemory, ProblemOutOfMemory
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.pipeline.strangers import OTHER_PROGRAM_BYTES
from tilewright.evaluator.processes.memory_ledger import DeviceCrowded
from tilewright.evaluator.runners.messages import is_out_of_device_memory
from tilewright.records import Correct, Failed, Incorrect, Outcome, Unjudged
from tilewright.records.codes import FailureReason, Stage, UnjudgedReason


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
