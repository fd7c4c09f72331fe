"""Triton candidates are compiled before the lease, for the shapes that their problem asks for.

The first of a problem compiles when it is called; once its shapes are known it is compiled here for
whatever processes it gets beside.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import metadata
from typing import Any

from tilewright.errors import InfrastructureError
from tilewright.evaluator.pipeline.build_cache import read_cache, write_cache
from tilewright.evaluator.pipeline.prepare import exchange
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.processes.host import CallShapes
from tilewright.evaluator.runners.ended import EvaluationEnded
from tilewright.records import Candidate, Failed, digest_text
from tilewright.wire.frames import MAX_BODY_BYTES
from tilewright.wire.names import COMPILED_BY_TRITON

__all__ = ["begin_compilers", "keep_call_shapes", "precompile"]

MAX_BYTES = MAX_BODY_BYTES // 2
MAX_CALL_SHAPES = 256
"""Problems whose shapes are remembered."""


def keep_call_shapes(session: EvaluationSession, calls: list[dict[str, Any]]) -> None:
    """Let later candidates of this problem be compiled before they hold the device."""
    asked = ("args", "grads", "grad_outputs")
    shapes = tuple({name: call[name] for name in asked} for call in calls)
    sketches = session.host.sketches
    sketches.setdefault(session.request.problem.digest(), CallShapes(session.init_tree, shapes))
    while len(sketches) > MAX_CALL_SHAPES:
        del sketches[next(iter(sketches))]


def begin_compilers(session: EvaluationSession) -> None:
    """Let the compilers come up beside the judge, if a Triton candidate is to be timed."""
    request, host = session.request, session.host
    if host.device.is_gpu and request.candidate.language == "triton" and request.timing.enabled:
        host.compilers.begin()


def precompile(session: EvaluationSession, name: str, candidate: Candidate) -> None:
    """Put what Triton compiles for a candidate into `session.artifacts[name]`, once.

    Nothing happens on a CPU, or before the problem's shapes are known.

    Raises:
        Ended: it took longer than a build may.
    """
    host, problem = session.host, session.request.problem
    sketch = host.sketches.get(problem.digest())
    if candidate.language != "triton" or not host.device.is_gpu or sketch is None:
        return
    if name in session.compiled:
        return
    session.compiled.add(name)
    folder = host.home / "builds" / _key(candidate, sketch, host.device.arch)
    with session.stage("precompile") as said:
        made = read_cache(folder)
        if made is None:
            fields = {
                "entry": candidate.entry,
                "arch": int(host.device.arch.removeprefix("sm_")),
                "init": sketch.init,
                "calls": list(sketch.calls),
                "import_paths": list(candidate.allow_imports),
            }
            made = _compiled(session, candidate, fields)
            if made:
                write_cache(folder, made)
        said.append(f"{name}: {'its kernels' if made else 'nothing, it does so when called'}")
    # Beside what was built of it.
    session.artifacts[name] = {**session.artifacts.get(name, {}), **made}


def _compiled(
    session: EvaluationSession, candidate: Candidate, fields: dict[str, Any]
) -> dict[str, bytes]:
    """Return what Triton made of a candidate, or nothing."""
    try:
        made = exchange(session, "compiler", candidate, fields)
        # Its own process answers: nothing else of it is taken, and no more than a load can carry.
        return {
            key: data
            for key, data in made.items()
            if key == COMPILED_BY_TRITON and len(data) <= MAX_BYTES
        }
    except EvaluationEnded as ended:
        if isinstance(ended.outcome, Failed) and ended.outcome.reason == "timeout":
            raise
        # It is called on real tensors next, and what it does then is its verdict.
        return {}
    except InfrastructureError as error:
        # Only a short cut is lost; no verdict depends on it.
        session.emit("waiting", {"message": f"nothing is compiled ahead: {error}"})
        return {}


def _key(candidate: Candidate, sketch: CallShapes, arch: str) -> str:
    parts = [candidate.digest(), sketch.init, list(sketch.calls), arch, _versions()]
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
