"""Triton candidates are compiled before the lease, for the shapes that their problem asks for.

The first of a problem compiles when it is called; once its shapes are known it is compiled here for
whatever processes it gets beside.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import metadata
from typing import Any

from tilewright.contestant.frames import MAX_BODY_BYTES
from tilewright.errors import InfrastructureError
from tilewright.evaluator.build import exchange
from tilewright.evaluator.evaluation import Evaluation
from tilewright.evaluator.host import Sketch
from tilewright.evaluator.kept_builds import read_cache, write_cache
from tilewright.evaluator.sides import Ended
from tilewright.records import Candidate, Failed, digest_text

__all__ = ["begin_compilers", "compile_ahead", "keep_sketch"]

MOST = MAX_BODY_BYTES // 2
SKETCHES = 256
"""Problems whose shapes are remembered."""
COMPILED = "compiled by triton"
"""As the compiler calls it (`contestant.launches.COMPILED`, which needs torch)."""


def keep_sketch(evaluation: Evaluation, calls: list[dict[str, Any]]) -> None:
    """Let later candidates of this problem be compiled before they hold the device."""
    asked = ("args", "grads", "grad_outputs")
    shapes = tuple({name: call[name] for name in asked} for call in calls)
    sketches = evaluation.host.sketches
    sketches.setdefault(evaluation.request.problem.digest(), Sketch(evaluation.init_tree, shapes))
    while len(sketches) > SKETCHES:
        del sketches[next(iter(sketches))]


def begin_compilers(evaluation: Evaluation) -> None:
    """Let the compilers come up beside the judge, if a Triton candidate is to be timed."""
    request, host = evaluation.request, evaluation.host
    if host.device.is_gpu and request.candidate.language == "triton" and request.timing.enabled:
        host.compilers.begin()


def compile_ahead(evaluation: Evaluation, name: str, candidate: Candidate) -> None:
    """Put what Triton compiles for a candidate into `evaluation.artifacts[name]`, once.

    Nothing happens on a CPU, or before the problem's shapes are known.

    Raises:
        Ended: it took longer than a build may.
    """
    host, problem = evaluation.host, evaluation.request.problem
    sketch = host.sketches.get(problem.digest())
    if candidate.language != "triton" or not host.device.is_gpu or sketch is None:
        return
    if name in evaluation.compiled:
        return
    evaluation.compiled.add(name)
    folder = host.home / "builds" / _key(candidate, sketch, host.device.arch)
    with evaluation.stage("compile ahead") as said:
        made = read_cache(folder)
        if made is None:
            fields = {
                "entry": candidate.entry,
                "arch": int(host.device.arch.removeprefix("sm_")),
                "init": sketch.init,
                "calls": list(sketch.calls),
                "import_paths": list(candidate.allow_imports),
            }
            made = _compiled(evaluation, candidate, fields)
            if made:
                write_cache(folder, made)
        said.append(f"{name}: {'its kernels' if made else 'nothing, it does so when called'}")
    # Beside what was built of it.
    evaluation.artifacts[name] = {**evaluation.artifacts.get(name, {}), **made}


def _compiled(
    evaluation: Evaluation, candidate: Candidate, fields: dict[str, Any]
) -> dict[str, bytes]:
    """Return what Triton made of a candidate, or nothing."""
    try:
        made = exchange(evaluation, "compiler", candidate, fields)
        # Its own process answers: nothing else of it is taken, and no more than a load can carry.
        return {key: data for key, data in made.items() if key == COMPILED and len(data) <= MOST}
    except Ended as ended:
        if isinstance(ended.outcome, Failed) and ended.outcome.reason == "timeout":
            raise
        # It is called on real tensors next, and what it does then is its verdict.
        return {}
    except InfrastructureError as error:
        # Only a short cut is lost; no verdict depends on it.
        evaluation.emit("waiting", {"message": f"nothing is compiled ahead: {error}"})
        return {}


def _key(candidate: Candidate, sketch: Sketch, arch: str) -> str:
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
