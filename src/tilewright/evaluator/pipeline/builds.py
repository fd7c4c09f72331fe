"""Builds: one exchange with a sandboxed builder or compiler, and a cache of what they made."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tilewright.evaluator.pipeline.build_limits import BuildWatch
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.runners.messages import Built, ErrorReport, EvaluationEnded, read
from tilewright.records import Candidate
from tilewright.records.codes import FailureReason, Stage
from tilewright.wire.frames import ChannelClosed, DeadlineExceeded, Fields, Frame, FrameError

MAX_CACHE_BYTES = 4 << 30
LEFT_SHARE = 0.75
"""The share of `MAX_CACHE_BYTES` that pruning leaves, so that not every build prunes."""
INDEX = "index.json"


def exchange(
    session: EvaluationSession,
    role: str,
    candidate: Candidate,
    fields: Fields,
    added: Sequence[tuple[str, bytes]] = (),
) -> dict[str, bytes]:
    """Give a candidate and `added` files to a fresh builder or compiler; return what it made."""
    limits, watch = session.request.limits, session.context.watch
    child = session.host.spawn(role, limits, candidate.allow_imports)
    try:
        child.wait_ready()
        session.runners.record_isolation(child)
        parts = [*((item.path, item.data) for item in candidate.files), *added]
        fields = {**fields, "files": [{"path": path, "size": len(data)} for path, data in parts]}
        child.channel.send("build", fields, b"".join(data for _, data in parts))
        deadline = time.monotonic() + limits.build_s
        watched = BuildWatch(child, limits, watch)
        while True:
            frame = child.channel.receive(deadline, watched)
            for fd in frame.fds:
                os.close(fd)
            if not watched.note(frame):
                return libraries_of(frame)
    except DeadlineExceeded:
        message = f"the build took longer than {limits.build_s:g} s"
        raise EvaluationEnded.failed(Stage.BUILD, FailureReason.TIMEOUT, message) from None
    except (ChannelClosed, FrameError) as error:
        message = f"the build ended without an answer: {error}"
        raise EvaluationEnded.failed(Stage.BUILD, FailureReason.BUILD, message) from None
    finally:
        child.kill()


def libraries_of(frame: Frame) -> dict[str, bytes]:
    """Return the libraries in a builder's answer, by name."""
    if frame.kind == "error":
        message = read(frame, ErrorReport).described().strip()
        raise EvaluationEnded.failed(Stage.BUILD, FailureReason.BUILD, message)
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


def read_cache(folder: Path) -> dict[str, bytes] | None:
    """Return what is stored in a folder, or `None` when nothing is, or nothing whole."""
    try:
        names = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        found = {name: (folder / file).read_bytes() for name, file in names.items()}
    except (OSError, ValueError):
        return None
    # A read-only cache serves all the same; it is only pruned in another order.
    with suppress(OSError):
        os.utime(folder)
    return found


def write_cache(folder: Path, libraries: dict[str, bytes]) -> None:
    """Store libraries under their key; a reader sees all of them or none."""
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}.new")
    try:
        fresh.mkdir(parents=True)
        names = {name: f"{index}.so" for index, name in enumerate(libraries)}
        for name, data in libraries.items():
            (fresh / names[name]).write_bytes(data)
        (fresh / INDEX).write_text(json.dumps(names), encoding="utf-8")
        if folder.exists() and read_cache(folder) is None:
            # A damaged entry would stand in the way for ever.
            shutil.rmtree(folder)
        fresh.rename(folder)
    except OSError:
        # A full or read-only disk, or another build that came first: the cache is a convenience.
        shutil.rmtree(fresh, ignore_errors=True)
    prune(folder.parent)


def prune(root: Path, most: int = MAX_CACHE_BYTES) -> None:
    """Remove the builds that nobody read for the longest, if more than `most` bytes are stored."""
    try:
        entries = [
            (folder.stat().st_mtime, folder, sum(file.stat().st_size for file in folder.iterdir()))
            for folder in root.iterdir()
        ]
    except OSError:
        # Another supervisor prunes at this moment.
        return
    total = sum(size for *_, size in entries)
    if total <= most:
        return
    for _, folder, size in sorted(entries):
        shutil.rmtree(folder, ignore_errors=True)
        total -= size
        if total <= LEFT_SHARE * most:
            return
