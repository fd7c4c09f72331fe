"""Precompiles Triton implementations before the device lease, for the shapes of their problem.

The first candidate of a problem compiles when it is called, and its calls show the shapes. Later
candidates are compiled here for all of their processes.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import metadata

from tilewright.errors import InfrastructureError
from tilewright.evaluator.pipeline.build_cache import read_cache, write_cache
from tilewright.evaluator.pipeline.build_process import exchange
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.processes.host import CallShapes
from tilewright.evaluator.runners.baselines import attribute_to_baseline
from tilewright.evaluator.runners.ended import EvaluationEnded
from tilewright.evaluator.runners.pool import Build
from tilewright.records import Candidate, Failed, digest_text
from tilewright.wire.frames import MAX_BODY_BYTES, Fields
from tilewright.wire.names import COMPILED_BY_TRITON

__all__ = ["keep_call_shapes", "precompile", "precompile_all", "start_compilers"]

MAX_ARTIFACT_BYTES = MAX_BODY_BYTES // 2
"""Most bytes of compiled kernels: a load frame must also carry the candidate's sources."""
MAX_CALL_SHAPES = 256
"""Problems whose call shapes are remembered; each takes some kilobytes."""


def keep_call_shapes(session: EvaluationSession, calls: list[Fields]) -> None:
    """Remember the shapes of this problem's calls, for its later candidates."""
    names = ("args", "grads", "grad_outputs")
    shapes = tuple({name: call[name] for name in names} for call in calls)
    known = session.host.call_shapes
    init = session.runners.problem.init_tree
    known.setdefault(session.request.problem.digest(), CallShapes(init, shapes))
    while len(known) > MAX_CALL_SHAPES:
        del known[next(iter(known))]


def start_compilers(session: EvaluationSession) -> None:
    """Start the compilers' forkserver early, if a Triton candidate is to be timed."""
    request, host = session.request, session.host
    if host.device.is_gpu and request.candidate.language == "triton" and request.timing.enabled:
        host.compilers.begin()


def precompile_all(session: EvaluationSession) -> None:
    """Precompile the candidate, and the baselines that are candidates themselves."""
    precompile(session, "candidate", session.request.candidate)
    for baseline in session.request.baselines:
        if baseline.candidate:
            with attribute_to_baseline(session.context, baseline.name):
                precompile(session, baseline.name, baseline.candidate)


def precompile(session: EvaluationSession, name: str, candidate: Candidate) -> None:
    """Add what Triton compiles for an implementation to its build, once.

    Nothing happens on a CPU, or before the problem's shapes are known.

    Raises:
        EvaluationEnded: it took longer than a build may.
    """
    host, problem = session.host, session.request.problem
    shapes = host.call_shapes.get(problem.digest())
    if candidate.language != "triton" or not host.device.is_gpu or shapes is None:
        return
    if name in session.precompiled:
        return
    session.precompiled.add(name)
    folder = host.home / "builds" / _key(candidate, shapes, host.device.arch)
    with session.stage("precompile") as details:
        made = read_cache(folder)
        if made is None:
            fields = {
                "entry": candidate.entry,
                "arch": int(host.device.arch.removeprefix("sm_")),
                "init": shapes.init,
                "calls": list(shapes.calls),
                "import_paths": list(candidate.allow_imports),
            }
            made = _compiled(session, candidate, fields)
            if made:
                write_cache(folder, made)
        details.append(f"{name}: {'its kernels' if made else 'nothing, it does so when called'}")
    built = session.runners.builds[name]
    session.runners.builds[name] = Build(built.loader, {**built.artifacts, **made})


def _compiled(session: EvaluationSession, candidate: Candidate, fields: Fields) -> dict[str, bytes]:
    """Return what Triton made of a candidate, or nothing."""
    try:
        made = exchange(session, "compiler", candidate, fields)
        # The candidate's own process answers, so only this entry of limited size is accepted.
        return {
            key: data
            for key, data in made.items()
            if key == COMPILED_BY_TRITON and len(data) <= MAX_ARTIFACT_BYTES
        }
    except EvaluationEnded as ended:
        if isinstance(ended.outcome, Failed) and ended.outcome.reason == "timeout":
            raise
        # The candidate is called on real tensors next; those calls decide its verdict.
        return {}
    except InfrastructureError as error:
        # Only time is lost; no verdict depends on precompilation.
        session.context.emit("waiting", {"message": f"kernels are not precompiled: {error}"})
        return {}


def _key(candidate: Candidate, shapes: CallShapes, arch: str) -> str:
    parts = [candidate.digest(), shapes.init, list(shapes.calls), arch, _versions()]
    return digest_text(json.dumps(parts))


@cache
def _versions() -> list[str]:
    found = []
    for package in ("torch", "triton"):
        try:
            found.append(metadata.version(package))
        except metadata.PackageNotFoundError:
            found.append("")
    return found
