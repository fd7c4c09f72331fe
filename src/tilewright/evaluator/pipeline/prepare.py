"""Stage prepare: parse, build and precompile candidate and baselines, before the device lease.

Builds run in a sandbox of their own and are cached by their content.
"""

from __future__ import annotations

import json
import shutil
from functools import cache

from tilewright.evaluator.devices.devices import Device
from tilewright.evaluator.devices.toolchain import HEADER, headers, processor, toolchain
from tilewright.evaluator.pipeline.build_cache import read_cache, write_cache
from tilewright.evaluator.pipeline.build_process import exchange
from tilewright.evaluator.pipeline.precompile import precompile_all, start_compilers
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.runners.baselines import attribute_to_baseline
from tilewright.evaluator.runners.ended import EvaluationEnded
from tilewright.evaluator.runners.pool import Build
from tilewright.languages.base import BuildPlan, Language
from tilewright.languages.syntax import Unparseable, is_python, parse_module
from tilewright.records import Candidate, Failed, Unjudged, digest_text
from tilewright.registry import load

__all__ = ["build", "prepare"]


def prepare(session: EvaluationSession) -> None:
    """Build the candidate and the baselines that are no problem's reference.

    Raises:
        EvaluationEnded: the candidate's build failed, or cannot be done on this machine.
        ProblemError: a baseline's build failed.
    """
    start_compilers(session)
    with session.stage("build"):
        build(session, "candidate", session.request.candidate)
        for baseline in session.request.baselines:
            if baseline.candidate:
                with attribute_to_baseline(session.context, baseline.name):
                    build(session, baseline.name, baseline.candidate)
    precompile_all(session)


def build(session: EvaluationSession, name: str, candidate: Candidate) -> BuildPlan:
    """Plan and build an implementation; `session.runners.builds[name]` has its libraries then.

    Raises:
        EvaluationEnded: the build failed, took too long, or cannot be done on this machine.
    """
    for file in candidate.files:
        if is_python(file):
            parsed = parse_module(file.path, file.text)
            if isinstance(parsed, Unparseable):
                message = f"{parsed.path}: {parsed.message}"
                raise EvaluationEnded(Failed(stage="build", reason="syntax_error", message=message))
    plan = _language(candidate.language).plan(candidate)
    session.runners.builds[name] = Build(plan.loader)
    if plan.kind == "none":
        return plan
    on_gpu = session.on_gpu
    if candidate.language == "cuda" and not on_gpu:
        raise EvaluationEnded(
            Unjudged(reason="no_device", message="CUDA candidates need an NVIDIA GPU")
        )
    if candidate.language == "cpp" and plan.kind == "c_abi" and on_gpu:
        message = "a C++ kernel computes on the CPU; judge it with --device cpu"
        raise EvaluationEnded(Unjudged(reason="unsupported_device", message=message))
    tool = plan.command[0] if plan.command else "g++"
    if shutil.which(tool) is None:
        raise EvaluationEnded(Unjudged(reason="no_compiler", message=f"{tool} is not installed"))
    folder = session.host.home / "builds" / _key(plan, candidate, session.host.device)
    cached = read_cache(folder)
    if cached is None:
        cached = _build(session, plan, candidate)
        write_cache(folder, cached)
    session.runners.builds[name] = Build(plan.loader, cached)
    return plan


@cache
def _language(name: str) -> Language:
    language: Language = load("languages", name)
    return language


def _key(plan: BuildPlan, candidate: Candidate, device: Device) -> str:
    made_for = [device.arch, device.environment.get("CUDA_HOME", "")]
    parts = [plan.digest(), candidate.entry, toolchain(), processor(), headers(), made_for]
    return digest_text(json.dumps(parts))


def _build(session: EvaluationSession, plan: BuildPlan, candidate: Candidate) -> dict[str, bytes]:
    fields = {
        "build": plan.kind,
        "command": list(plan.compiler(session.host.device.arch)),
        "units": list(plan.units),
        "header": HEADER.read_text(encoding="ascii"),
    }
    return exchange(session, "builder", candidate, fields)
