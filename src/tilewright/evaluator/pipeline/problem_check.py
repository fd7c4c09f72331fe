"""The check of a problem: made by its first evaluation, and stored for all later ones."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

from tilewright._version import __version__
from tilewright.errors import RecordError
from tilewright.evaluator.judge_client.gpu_messages import ForbidTf32
from tilewright.evaluator.judge_client.problem_messages import CheckHealth
from tilewright.evaluator.pipeline.problem_labels import labels_of, unsound_text
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.processes.memory_ledger import DeviceCrowded
from tilewright.evaluator.runners.messages import EvaluationEnded
from tilewright.records import Case
from tilewright.records.base import digest_text
from tilewright.records.codes import Stage, UnjudgedReason
from tilewright.records.problem_health import HEALTH_VERSION, CaseCheck, ProblemHealth
from tilewright.records.whole_files import write_whole
from tilewright.wire.names import allowed_variations

MAX_SHARED_S = 1.5
"""Seconds of a case up to which a check counts that others may have slowed down. The float64
oracle gives up after two."""
CHECK_S = 300.0
"""Seconds for one case: only an unsound problem with a slow reference takes minutes."""


def recall_problem(session: EvaluationSession) -> None:
    """Read the stored check of the problem, and end the evaluation if the problem is unsound."""
    health = read_health(_path(session))
    if health is not None and _is_current(session, health):
        _apply(session, health)


def check_problem(session: EvaluationSession, *, shared: bool = False) -> None:
    """Check a problem that has no stored check, and store the result.

    With `shared` other evaluations use the device. A check that takes long may then have left out
    what is slow. So its result is dropped, and the problem is checked again with its device alone.
    """
    if session.problem_health is not None:
        return
    with session.stage(Stage.CHECK_PROBLEM), session.credited():
        cases, took_s = list[CaseCheck](), 0.0
        for case in session.request.problem.cases:
            checked, seconds = _checked(session, case)
            cases.append(checked)
            took_s = max(took_s, seconds)
        if shared and took_s > MAX_SHARED_S:
            return
        health = ProblemHealth(
            version=HEALTH_VERSION,
            evaluator=__version__,
            problem_digest=session.request.problem.digest(),
            protocol=session.request.protocol,
            cases=tuple(cases),
        )
        if not any(case.unchecked for case in cases):
            # Where memory was missing, a later evaluation may have more.
            write_health(_path(session), health)
        if session.on_gpu and not health.tf32:
            with session.on_device():
                session.judge.request(ForbidTf32())
    _apply(session, health)


def _checked(session: EvaluationSession, case: Case) -> tuple[CaseCheck, float]:
    """Return the check of a case, and its seconds without those of a wait for the device."""
    request = session.request
    session.context.emit("problem_check", {"case": case.name})
    message = CheckHealth(
        params=dict(case.params),
        variations=["nominal", *allowed_variations(request.problem.input_variations)],
        seed=session.context.seed("health", case.name) & 0x7FFFFFFF,
        strict=request.protocol == "strict",
    )
    with session.on_device():
        start = time.monotonic()
        found = vars(session.judge.request(message, CHECK_S))
        took_s = time.monotonic() - start
    if found["unchecked"] and session.host.shares_memory:
        # Only a result that also holds alone on the device may be stored.
        raise DeviceCrowded("the check of the problem lacked memory while others held some")
    anywhere, in_reference = found.pop("cuda_use")
    cuda = {"cuda_on_cpu": anywhere, "cuda_in_reference": in_reference}
    return CaseCheck.model_validate({"case": case.name, **cuda, **found}), took_s


def _apply(session: EvaluationSession, health: ProblemHealth) -> None:
    """Note the check in the session; label the report, or end the evaluation."""
    session.problem_health = health
    session.runners.tf32 = session.request.allows_tf32 and health.tf32
    if health.unsound and session.request.protocol == "strict":
        reason = UnjudgedReason.UNSOUND_PROBLEM
        raise EvaluationEnded.unjudged(reason, unsound_text(health))
    for name, detail in labels_of(health):
        session.add_label(name, detail)


def _is_current(session: EvaluationSession, health: ProblemHealth) -> bool:
    """Tell whether a stored check is of this problem and this version."""
    problem = session.request.problem
    return (
        (health.version, health.evaluator) == (HEALTH_VERSION, __version__)
        and health.problem_digest == problem.digest()
        and health.protocol == session.request.protocol
        and [case.case for case in health.cases] == [case.name for case in problem.cases]
    )


def _path(session: EvaluationSession) -> Path:
    """Return where the check is stored: by problem, kind of device, protocol and precision."""
    request, device = session.request, session.host.device
    parts = (request.problem.digest(), device.is_gpu, request.protocol, request.allows_tf32)
    key = digest_text(json.dumps(parts))
    # 100,000 problems lie in 256 folders.
    return session.host.home / "problem-checks" / key[:2] / f"{key[2:34]}.json"


def read_health(path: Path) -> ProblemHealth | None:
    """Return a stored check; `None`: there is none, or it is damaged."""
    try:
        return ProblemHealth.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecordError):
        return None


def write_health(path: Path, health: ProblemHealth) -> None:
    """Store a check. A reader sees the old file or the new one; a full disk costs only a check."""
    with contextlib.suppress(OSError):
        write_whole(path, health.to_json())
