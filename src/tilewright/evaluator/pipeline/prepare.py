"""Stages build and precompile of candidate and baselines, before the device lease.

The first Triton candidate of a problem compiles when it is called, and its calls show the shapes.
Later candidates are precompiled here for all of their processes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache

from tilewright.errors import InfrastructureError
from tilewright.evaluator.devices.devices import Device
from tilewright.evaluator.devices.toolchain import (
    HEADER,
    headers,
    installed_versions,
    processor,
    toolchain,
)
from tilewright.evaluator.pipeline.builds import exchange, read_cache, write_cache
from tilewright.evaluator.pipeline.problem_check import recall_problem
from tilewright.evaluator.pipeline.requested_builds import (
    requested_artifacts,
    require_compiler,
    write_complete,
)
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.runners.baselines import attribute_to_baseline, reference_of
from tilewright.evaluator.runners.messages import EvaluationEnded
from tilewright.evaluator.runners.pool import Build
from tilewright.languages.base import SOURCE_SUFFIXES, BuildPlan, Language
from tilewright.languages.compiler_remarks import FLAG, loop_remarks
from tilewright.languages.detect import MissingEntry, detect, find_entry
from tilewright.languages.syntax import Unparseable, is_python, parse_module
from tilewright.records import Candidate, Failed, digest_text
from tilewright.records.codes import FailureReason, LabelName, Stage, UnjudgedReason
from tilewright.records.request import COMPILE_MODES
from tilewright.registry import load
from tilewright.wire.frames import MAX_BODY_BYTES, Fields
from tilewright.wire.names import COMPILED_BY_TRITON, COMPILER_REMARKS, WHOLE_HEADER_SOURCES

MAX_ARTIFACT_BYTES = MAX_BODY_BYTES // 2
"""Most bytes of compiled kernels: a load frame must also carry the candidate's sources."""
MAX_LABEL_DETAIL = 200
"""Characters of names of source files in a label."""
MAX_CALL_SHAPES = 256
"""Problems whose call shapes are remembered; each takes some kilobytes."""


def prepare(session: EvaluationSession) -> None:
    """Build the candidate and the baselines that are no problem's reference.

    No build starts for a problem whose stored check shows that it is unsound.
    """
    recall_problem(session)
    request = session.request
    if session.on_gpu and request.candidate.language == "triton" and request.timing.enabled:
        session.host.compilers.begin()
    with session.stage(Stage.BUILD):
        _for_each_candidate(session, build)
    precompile_all(session)


def precompile_all(session: EvaluationSession) -> None:
    """Precompile the candidate and the baselines, as far as they are written in Triton."""
    _for_each_candidate(session, _precompile)
    problem = session.request.problem
    names = [one.name for one in session.request.baselines if not one.candidate]
    if not session.on_gpu or detect((problem.source,)) != "triton":
        return
    for name in names:
        # torch compiles what it compiles in a process of its own.
        if name not in COMPILE_MODES:
            session.runners.builds.setdefault(name, Build("python"))
            # The runner compiles a kernel at its first call if this step cannot.
            with suppress(EvaluationEnded), session.credited():
                _precompile(session, name, reference_of(problem, "triton"))


def _for_each_candidate(
    session: EvaluationSession, action: Callable[[EvaluationSession, str, Candidate], object]
) -> None:
    action(session, "candidate", session.request.candidate)
    for baseline in session.request.baselines:
        if baseline.candidate:
            with attribute_to_baseline(session.context, baseline.name):
                action(session, baseline.name, baseline.candidate)


def build(session: EvaluationSession, name: str, candidate: Candidate) -> BuildPlan:
    """Plan and build an implementation; `session.runners.builds[name]` has its libraries then."""
    for file in candidate.files:
        if file.encoding != "utf-8" and file.path.endswith(SOURCE_SUFFIXES):
            message = f"{file.path}: a source file must be UTF-8"
            raise EvaluationEnded.failed(Stage.BUILD, FailureReason.SYNTAX_ERROR, message)
        parsed = parse_module(file.path, file.text) if is_python(file) else None
        if isinstance(parsed, Unparseable):
            message = f"{parsed.path}: {parsed.message}"
            raise EvaluationEnded.failed(Stage.BUILD, FailureReason.SYNTAX_ERROR, message)
    if name == "candidate":
        _require_entry(session, candidate)
    plan = _language(candidate.language).plan(candidate)
    made = {} if plan.kind == "none" else dict(_planned(session, plan, candidate))
    remarks = made.pop(COMPILER_REMARKS, b"").decode(errors="replace")
    if name == "candidate":
        sources = {file.path: file.text for file in candidate.files if not is_python(file)}
        session.observations.correctness.loops = loop_remarks(remarks, sources)
    made = {**made, **requested_artifacts(session, name, candidate)}
    whole = made.pop(WHOLE_HEADER_SOURCES, b"")
    if name == "candidate" and whole:
        # The candidate's own code ran where this was made.
        text = whole.decode(errors="replace")[:MAX_LABEL_DETAIL]
        detail = f"{text}: torch/types.h is not enough, so nvcc needs about twice as long"
        session.add_label(LabelName.WHOLE_TORCH_HEADER, detail)
    sizes = [*map(len, made.values()), *(len(file.data) for file in candidate.files)]
    if (total := sum(sizes)) > MAX_BODY_BYTES:
        # All of it goes into one frame to a runner.
        message = f"sources and libraries have {total} bytes, at most {MAX_BODY_BYTES} are allowed"
        raise EvaluationEnded.failed(Stage.BUILD, FailureReason.BUILD, message)
    session.runners.builds[name] = Build(plan.loader, made)
    return plan


def _require_entry(session: EvaluationSession, candidate: Candidate) -> None:
    """End the evaluation if the candidate does not define its entry point."""
    problem = session.request.problem
    forced = candidate.entry if candidate.entry != problem.entry else None
    found = find_entry(candidate.files, problem.entry, forced, problem.aliases)
    if isinstance(found, MissingEntry):
        message = f"{found.path}: {found.message}"
        raise EvaluationEnded.failed(Stage.BUILD, FailureReason.MISSING_ENTRY, message)


def _planned(session: EvaluationSession, plan: BuildPlan, candidate: Candidate) -> dict[str, bytes]:
    """Return the libraries of a build plan, from the cache or new."""
    if candidate.language == "cuda" and not session.on_gpu:
        message = "CUDA candidates need an NVIDIA GPU"
        raise EvaluationEnded.unjudged(UnjudgedReason.NO_DEVICE, message)
    if candidate.language == "cpp" and plan.kind == "c_abi" and session.on_gpu:
        message = "a C++ kernel computes on the CPU; judge it with --device cpu"
        raise EvaluationEnded.unjudged(UnjudgedReason.UNSUPPORTED_DEVICE, message)
    require_compiler(plan.command[0] if plan.command else "g++")
    folder = session.host.home / "builds" / build_key(plan, candidate, session.host.device)
    made = read_cache(folder)
    if made is None:
        made = _build(session, plan, candidate)
        write_complete(folder, made)
    return made


@cache
def _language(name: str) -> Language:
    language: Language = load("languages", name)
    return language


def build_key(plan: BuildPlan, candidate: Candidate, device: Device) -> str:
    """Return the key of a build in the cache: a digest of all that the build reads."""
    made_for = [device.arch, device.environment.get("CUDA_HOME", "")]
    parts = [plan.digest(), FLAG, candidate.entry, toolchain(), processor(), headers(), made_for]
    return digest_text(json.dumps(parts))


def _build(session: EvaluationSession, plan: BuildPlan, candidate: Candidate) -> dict[str, bytes]:
    fields = {
        "build": plan.kind,
        "command": list(plan.compiler(session.host.device.arch)),
        "units": list(plan.units),
        "header": HEADER.read_text(encoding="ascii"),
        "remarks": FLAG if plan.command[:1] == ("g++",) else "",
    }
    return exchange(session, "builder", candidate, fields)


def keep_call_shapes(session: EvaluationSession, calls: list[Fields]) -> None:
    """Remember the shapes of this problem's calls, for its later candidates."""
    names = ("args", "grads", "grad_outputs")
    shapes = [{name: call[name] for name in names} for call in calls]
    known = session.host.call_shapes
    init = session.runners.problem.init
    known.setdefault(session.request.problem.digest(), {"init": init, "calls": shapes})
    while len(known) > MAX_CALL_SHAPES:
        del known[next(iter(known))]


def _precompile(session: EvaluationSession, name: str, candidate: Candidate) -> None:
    """Add what Triton compiles on a GPU to a build, once the problem's shapes are known."""
    device = session.host.device
    shapes = session.host.call_shapes.get(session.request.problem.digest())
    if candidate.language != "triton" or not device.is_gpu or shapes is None:
        return
    if name in session.precompiled:
        return
    session.precompiled.add(name)
    installed = installed_versions()
    versions = [installed.get(package, "") for package in ("torch", "triton")]
    parts = [candidate.digest(), shapes["init"], shapes["calls"], device.arch, versions]
    folder = session.host.home / "builds" / digest_text(json.dumps(parts))
    with session.stage(Stage.PRECOMPILE) as details:
        made = read_cache(folder)
        if made is None:
            made = _compiled(session, candidate, shapes)
            if made:
                write_cache(folder, made)
        details.append(f"{name}: {'its kernels' if made else 'nothing, it does so when called'}")
    built = session.runners.builds[name]
    session.runners.builds[name] = Build(built.loader, {**built.artifacts, **made})


def _compiled(session: EvaluationSession, candidate: Candidate, shapes: Fields) -> dict[str, bytes]:
    """Return what Triton made of a candidate, or nothing."""
    fields = {
        "entry": candidate.entry,
        "arch": int(session.host.device.arch.removeprefix("sm_")),
        "import_paths": list(candidate.allow_imports),
        **shapes,
    }
    try:
        made = exchange(session, "compiler", candidate, fields)
    except EvaluationEnded as ended:
        match ended.outcome:
            case Failed(stage=stage, reason=FailureReason.TIMEOUT) if stage != Stage.PRECOMPILE:
                raise
        # The candidate is called on real tensors next; those calls decide its verdict.
        return {}
    except InfrastructureError as error:
        # Only time is lost; no verdict depends on precompilation.
        session.context.emit("waiting", {"message": f"kernels are not precompiled: {error}"})
        return {}
    # The candidate's own process answers, so only this entry of limited size is accepted.
    data = made.get(COMPILED_BY_TRITON)
    return {} if data is None or len(data) > MAX_ARTIFACT_BYTES else {COMPILED_BY_TRITON: data}
