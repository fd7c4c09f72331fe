"""One exchange with a sandboxed builder or compiler: sources in, libraries out."""

from __future__ import annotations

import os
import time

from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.processes.forkserver_client import Child
from tilewright.evaluator.runners.ended import EvaluationEnded
from tilewright.evaluator.runners.messages import Built, ErrorReport, read
from tilewright.records import Candidate, Failed
from tilewright.wire.frames import ChannelClosed, DeadlineExceeded, Fields, Frame, FrameError

__all__ = ["exchange", "libraries_of"]


def exchange(
    session: EvaluationSession, role: str, candidate: Candidate, fields: Fields
) -> dict[str, bytes]:
    """Give a candidate to a fresh builder or compiler, and return what it made.

    Raises:
        EvaluationEnded: it failed or took longer than `build_s`, or a required layer is not active.
    """
    request = session.request
    child = session.host.spawn(role, request.limits, candidate.allow_imports)
    try:
        child.wait_ready()
        session.runners.record_isolation(child)
        parts = [(item.path, item.text.encode()) for item in candidate.files]
        fields = {**fields, "files": [{"path": path, "size": len(data)} for path, data in parts]}
        try:
            child.channel.send("build", fields, b"".join(data for _, data in parts))
            deadline = time.monotonic() + request.limits.build_s
            return libraries_of(_built_frame(session, child, deadline))
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
    frame = child.channel.receive(deadline, session.context.watch)
    if frame.kind == "entering":
        frame = child.channel.receive(deadline, session.context.watch)
    for fd in frame.fds:
        os.close(fd)
    return frame


def libraries_of(frame: Frame) -> dict[str, bytes]:
    if frame.kind == "error":
        report = read(frame, ErrorReport)
        lines = "\n".join(report.traceback)
        message = f"{report.type}: {report.message}\n{lines}".strip()
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
