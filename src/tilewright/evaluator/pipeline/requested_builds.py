"""Extensions that a candidate builds in its constructor or in a first call.

Its runner asks for the build and ends. The evaluation gives the device back, and begins again with
the library. The calls are remembered, so that a later evaluation builds them before it begins.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from tilewright.evaluator.context import RequestedBuild
from tilewright.evaluator.devices.devices import Device
from tilewright.evaluator.devices.toolchain import headers, processor, toolchain
from tilewright.evaluator.pipeline.builds import exchange, read_cache, write_cache
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.runners.build_requests import MAX_REQUESTS, read_call
from tilewright.evaluator.runners.messages import EvaluationEnded
from tilewright.records import Candidate, EvalRequest, Failed, digest_text
from tilewright.records.codes import FailureReason, Stage, UnjudgedReason
from tilewright.wire.builder_calls import CALL_FILE, BuilderCall, is_failed, split_key
from tilewright.wire.names import WHOLE_HEADER_SOURCES


def require_compiler(tool: str = "g++") -> None:
    """End the evaluation if a compiler is missing."""
    if shutil.which(tool) is None:
        raise EvaluationEnded.unjudged(UnjudgedReason.NO_COMPILER, f"{tool} is not installed")


def requested_artifacts(
    session: EvaluationSession, name: str, candidate: Candidate
) -> dict[str, bytes]:
    """Return the libraries that an implementation has asked for, from the cache or new."""
    artifacts: dict[str, bytes] = {}
    for build in session.context.requested:
        if build.implementation == name:
            artifacts |= _library(session, candidate, build.call)
    return artifacts


def _library(
    session: EvaluationSession, candidate: Candidate, call: BuilderCall
) -> dict[str, bytes]:
    """Return the library of one call, or what the compiler said of it, by its key."""
    require_compiler()
    # By candidate: its code runs where its library is made, and no other one must load that.
    folder = _folder(session.host, [candidate.digest(), call.digest()])
    stored = read_cache(folder)
    if stored is not None:
        return stored
    made = exchange(
        session,
        "builder",
        candidate,
        {"build": "call", "header": ""},
        [(CALL_FILE, call.encoded())],
    )
    libraries = made.keys() - {WHOLE_HEADER_SOURCES}
    if [split_key(key)[0] for key in libraries] != [call.digest()]:
        message = f"extension {call.name!r} was built without a library"
        raise EvaluationEnded.failed(Stage.BUILD, FailureReason.BUILD, message)
    write_complete(folder, made)
    return made


def write_complete(folder: Path, made: dict[str, bytes]) -> None:
    """Cache libraries unless one is missing: a compiler may also lack memory."""
    if not any(map(is_failed, made)):
        write_cache(folder, made)


def _folder(host: DeviceHost, parts: list[str]) -> Path:
    return host.home / "builds" / digest_text(json.dumps([*parts, *_made_for(host.device)]))


def _made_for(device: Device) -> list[object]:
    return [
        toolchain(),
        processor(),
        headers(),
        device.arch,
        device.environment.get("CUDA_HOME", ""),
    ]


def _implementations(request: EvalRequest) -> Iterator[tuple[str, Candidate]]:
    yield "candidate", request.candidate
    for baseline in request.baselines:
        if baseline.candidate:
            yield baseline.name, baseline.candidate


def recall(host: DeviceHost, request: EvalRequest) -> tuple[RequestedBuild, ...]:
    """Return what these implementations asked for in earlier evaluations of the problem."""
    found: list[RequestedBuild] = []
    for name, candidate in _implementations(request):
        stored = read_cache(_list_folder(host, request, candidate)) or {}
        for data in list(stored.values())[:MAX_REQUESTS]:
            # A damaged entry is asked for again.
            with suppress(ValidationError):
                found.append(RequestedBuild(name, read_call(data)))
    return tuple(found)


def remember(host: DeviceHost, request: EvalRequest, builds: tuple[RequestedBuild, ...]) -> None:
    """Store what each implementation has asked for, for later evaluations of the problem."""
    for name, candidate in _implementations(request):
        calls = [build.call for build in builds if build.implementation == name]
        if calls:
            folder = _list_folder(host, request, candidate)
            shutil.rmtree(folder, ignore_errors=True)
            write_cache(folder, {call.digest(): call.encoded() for call in calls})


def _list_folder(host: DeviceHost, request: EvalRequest, candidate: Candidate) -> Path:
    return _folder(host, ["requested", candidate.digest(), request.problem.digest()])


def caused_by_build(session: EvaluationSession, outcome: Failed) -> Failed:
    """Return a failed build in place of the exception to which it led in the candidate."""
    built = session.runners.builds.get("candidate")
    if built is None or outcome.reason != FailureReason.EXCEPTION:
        return outcome
    for key, text in built.artifacts.items():
        if is_failed(key):
            message = f"{text.decode(errors='replace')}\n{outcome.message}"
            return Failed(stage=Stage.BUILD, reason=FailureReason.BUILD, message=message)
    return outcome
