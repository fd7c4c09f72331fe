"""Builds: in a sandbox of their own, before any device lease, cached by content."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import time
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.evaluator.devices.devices import Device
from tilewright.evaluator.pipeline.build_cache import read_cache, write_cache
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.processes.forkserver_client import Child
from tilewright.evaluator.runners.ended import EvaluationEnded
from tilewright.evaluator.runners.messages import Built, ErrorReport, read
from tilewright.languages.base import BuildPlan, Language
from tilewright.languages.syntax import Unparseable, is_python, parse_module
from tilewright.records import Candidate, Failed, Unjudged, digest_text
from tilewright.registry import load
from tilewright.wire.frames import ChannelClosed, DeadlineExceeded, Frame, FrameError

__all__ = ["exchange", "prepare"]

HEADER = Path(__file__).parent.parent.parent / "runner" / "loaders" / "tilewright.h"


def prepare(session: EvaluationSession, name: str, candidate: Candidate) -> BuildPlan:
    """Plan and build a candidate; its libraries are then in `session.artifacts[name]`.

    Raises:
        Ended: the build failed, took too long, or cannot be done on this machine.
    """
    for file in candidate.files:
        if is_python(file):
            parsed = parse_module(file.path, file.text)
            if isinstance(parsed, Unparseable):
                message = f"{parsed.path}: {parsed.message}"
                raise EvaluationEnded(Failed(stage="build", reason="syntax_error", message=message))
    plan = _language(candidate.language).plan(candidate)
    session.loaders[name] = plan.loader
    if plan.kind == "none":
        return plan
    on_gpu = session.host.device.is_gpu
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
    session.artifacts[name] = cached
    return plan


@cache
def _language(name: str) -> Language:
    language: Language = load("languages", name)
    return language


def _key(plan: BuildPlan, candidate: Candidate, device: Device) -> str:
    made_for = [device.arch, device.environment.get("CUDA_HOME", "")]
    parts = [plan.digest(), candidate.entry, toolchain(), processor(), headers(), made_for]
    return digest_text(json.dumps(parts))


@cache
def headers() -> list[str]:
    """Return what a build includes beside the candidate: ours, Python's and torch's headers."""
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        torch = ""
    return [HEADER.read_text(encoding="ascii"), platform.python_version(), torch]


@cache
def toolchain() -> str:
    """Return the first line of `g++ --version`, or an empty text."""
    path = shutil.which("g++")
    if path is None:
        return ""
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0]


@cache
def processor() -> str:
    """Return what `-march=native` stands for here: the model and flags of the first core."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n\n")[0].splitlines()
    except OSError:
        return platform.machine()
    wanted = ("model name", "flags", "Features", "CPU part")
    return "\n".join(line for line in lines if line.startswith(wanted))


def _build(session: EvaluationSession, plan: BuildPlan, candidate: Candidate) -> dict[str, bytes]:
    fields = {
        "build": plan.kind,
        "command": list(plan.compiler(session.host.device.arch)),
        "units": list(plan.units),
        "header": HEADER.read_text(encoding="ascii"),
    }
    return exchange(session, "builder", candidate, fields)


def exchange(
    session: EvaluationSession, role: str, candidate: Candidate, fields: dict[str, Any]
) -> dict[str, bytes]:
    """Give a candidate to a fresh builder or compiler, and return what it made.

    Raises:
        Ended: it failed or took longer than `build_s`, or a demanded layer is not active.
    """
    request = session.request
    child = session.host.spawn(role, request.limits, candidate.allow_imports)
    try:
        child.wait_ready()
        session.record_isolation(child)
        parts = [(item.path, item.text.encode()) for item in candidate.files]
        fields = {**fields, "files": [{"path": path, "size": len(data)} for path, data in parts]}
        try:
            child.channel.send("build", fields, b"".join(data for _, data in parts))
            deadline = time.monotonic() + request.limits.build_s
            return _libraries(_built_frame(session, child, deadline))
        except DeadlineExceeded:
            message = f"the build took longer than {request.limits.build_s:g} s"
            raise EvaluationEnded(
                Failed(stage="build", reason="timeout", message=message)
            ) from None
        except (ChannelClosed, FrameError) as error:
            message = f"the build ended without an answer: {error}"
            raise EvaluationEnded(Failed(stage="build", reason="build", message=message)) from None
    finally:
        child.kill()


def _built_frame(session: EvaluationSession, child: Child, deadline: float) -> Frame:
    frame = child.channel.receive(deadline, session.watch)
    if frame.kind == "entering":
        frame = child.channel.receive(deadline, session.watch)
    for fd in frame.fds:
        os.close(fd)
    return frame


def _libraries(frame: Frame) -> dict[str, bytes]:
    if frame.kind == "error":
        said = read(frame, ErrorReport)
        lines = "\n".join(said.traceback)
        message = f"{said.type}: {said.message}\n{lines}".strip()
        raise EvaluationEnded(Failed(stage="build", reason="build", message=message))
    if frame.kind != "built":
        raise FrameError(f"a build answered {frame.kind[:40]!r}")
    sizes = read(frame, Built).artifacts
    if sum(sizes.values()) != len(frame.body):
        raise FrameError(f"a build answered {sum(sizes.values())} as {len(frame.body)} bytes")
    libraries, start = {}, 0
    for name, size in sizes.items():
        libraries[name] = frame.body[start : start + size]
        start += size
    return libraries
