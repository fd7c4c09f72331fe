"""Bars: random frames and files never hang the evaluator or raise an unexpected exception."""

from __future__ import annotations

import json
import os
import pickle
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.attacks.corpus import BUNDLED, CORPUS
from benchmarks.attacks.corpus_files import read_header
from benchmarks.bars import Bar, executor, finish
from tilewright.api import build_request
from tilewright.config import load
from tilewright.errors import ConfigError, TilewrightError
from tilewright.evaluator.pipeline.builds import libraries_of
from tilewright.evaluator.processes.forkserver_client import Child, ChildOutput
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.messages import EvaluationEnded
from tilewright.languages.static_features import static_features
from tilewright.problems.candidates import make_candidate, read_files
from tilewright.problems.loader import find_problem
from tilewright.records import Candidate, Limits, Problem
from tilewright.registry import load as load_plugin
from tilewright.wire import sync_page
from tilewright.wire.frames import (
    Channel,
    ChannelClosed,
    DeadlineExceeded,
    FrameError,
    encode,
)

SEED = 20_251_121
FRAMES = 10_000
FILES = 1_000
JUDGED = 40
LIMITS = Limits(call_timeout_s=0.03, load_s=0.03, exit_s=0.03)
HANG_S = 10.0
"""Most seconds of one exchange, or of one file, on a busy machine; deadlines are 30 ms."""
JUDGED_S = 60.0
OURS = (FrameError, ChannelClosed, DeadlineExceeded, TilewrightError)

OUTPUT = {"type": "tensor", "dtype": "float32", "shape": [2], "device": "cpu", "address": 0}
VALID: tuple[tuple[str, dict[str, Any], bytes], ...] = (
    ("result", {"outputs": [OUTPUT], "launches": 1, "operator_counts": {"aten::mm": 2}}, b""),
    ("error", {"during": "call", "type": "E", "message": "m", "traceback": ["a.py:1"]}, b""),
    ("mapped", {}, b""),
    ("entering", {}, b""),
    ("loaded", {}, b'[["w", [2, 3], "float32"]]'),
    ("weights_read", {}, b""),
    ("built", {"artifacts": {"kernel": 3}}, b"ELF"),
    ("bye", {}, b""),
)


class Hung(BaseException):
    """An exchange exceeded `HANG_S`."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise `Hung` when the block takes longer; for the main thread."""

    def ring(_: int, __: FrameType | None) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def value(rng: random.Random, depth: int = 0) -> Any:  # noqa: ANN401 - any JSON, and some that is none
    """Return a random JSON value of the kinds that break parsers."""
    plain: list[Any] = [
        *(None, True, False, 0, -1, 1, 1 << 40, (1 << 40) + 1, -(1 << 70), 10**400, 0.5, 1e308),
        *(float("nan"), float("inf"), "", "tensor", "float32", "\ud800", "\0", "x" * 9000, "1"),
        *("aten::mm", "../../etc/passwd", "__class__"),
    ]
    if depth > 3 or rng.random() < 0.6:
        return rng.choice(plain)
    if rng.random() < 0.5:
        return [value(rng, depth + 1) for _ in range(rng.choice((0, 1, 2, 70)))]
    keys = ["outputs", "launches", "operator_counts", "type", "shape", "\ud800", "", "kind", "body"]
    return {rng.choice(keys): value(rng, depth + 1) for _ in range(rng.randrange(4))}


def framed(header: bytes, body: bytes = b"") -> bytes:
    """Return the length of a header, the header and the body; they need not be valid."""
    return struct.pack(">I", len(header)) + header + body


def mutated(rng: random.Random) -> bytes:
    """Return a valid frame with one field changed, removed or added."""
    kind, given, body = rng.choice(VALID)
    fields = json.loads(json.dumps(given))
    places: list[Any] = [fields, *(item for item in fields.get("outputs", []))]
    place = rng.choice(places)
    name = rng.choice([*place, "extra", "kind", "body"])
    if rng.random() < 0.2:
        place.pop(name, None)
    else:
        place[name] = value(rng)
    header = {"kind": kind, "body": len(body), **fields}
    return framed(json.dumps(header).encode(), rng.choice((body, b"", rng.randbytes(20))))


def frame(rng: random.Random) -> bytes:
    """Return the bytes of one random frame."""
    kind, fields, body = rng.choice(VALID)
    good = encode(kind, fields, body)
    deep = rng.choice((b"[" * 50_000, b'{"a":' * 30_000, b'{"kind":"result","x":' + b"[" * 9000))
    makers: list[Callable[[], bytes]] = [
        lambda: rng.randbytes(rng.randrange(64)),
        lambda: struct.pack(">I", rng.choice((0, 1, 1 << 16, 1 << 21, (1 << 32) - 1))) + b"{}",
        lambda: framed(rng.randbytes(rng.randrange(2, 200))),
        lambda: framed(json.dumps(value(rng)).encode()),
        lambda: framed(deep),
        lambda: pickle.dumps({"verdict": "correct"}),
        lambda: framed(pickle.dumps({"kind": "result"})),
        lambda: good[: rng.randrange(len(good) + 1)],
        lambda: bytes(byte ^ (rng.random() < 0.05) << rng.randrange(8) for byte in good),
        lambda: mutated(rng),
        lambda: mutated(rng),
        lambda: mutated(rng),
        lambda: framed(json.dumps({"kind": "loaded", "body": 60}).encode(), rng.randbytes(60)),
        lambda: good,
    ]
    return rng.choice(makers)()


@dataclass
class HostileRunner:
    """The supervisor's `Runner`, and the other ends of its channels. Lifetime: one exchange."""

    rng: random.Random
    process: subprocess.Popen[bytes] = field(init=False)
    runner: Runner = field(init=False)
    theirs: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        """Start a process in place of the runner, and open the runner's ends of all channels."""
        self.process = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
        ours, self.theirs = socket.socketpair()
        self.theirs.setblocking(False)
        reader, writer = os.pipe()
        if self.rng.random() < 0.5:
            # A wait status of any kind: an exit code, a signal with a name or without one.
            os.write(writer, struct.pack("<i", self.rng.choice((0, 256, 9, 11, 40, 64, 139, -1))))
        os.close(writer)
        output = ChildOutput(1000)
        os.close(output.writer)
        child = Child(Channel(ours), self.process.pid, reader, output, "runner")
        self.runner = Runner("fuzz", child, LIMITS, lambda: None, float("inf"), 1)
        self.runner.entered = True

    def send(self, data: bytes) -> None:
        """Send bytes as far as the socket takes them, sometimes with file descriptors."""
        with suppress(OSError):
            if data and self.rng.random() < 0.05:
                fds = [self.theirs.fileno()] * self.rng.randrange(1, 12)
                data = data[socket.send_fds(self.theirs, [data[:4096]], fds) :]
            while data:
                data = data[self.theirs.send(data) :]

    def close(self) -> None:
        """End the process and release everything."""
        self.theirs.close()
        self.runner.close()
        self.process.wait()


def readers(hostile: HostileRunner) -> dict[str, Callable[[], object]]:
    """Return every way in which the supervisor reads messages of a runner or builder."""
    runner, rng = hostile.runner, hostile.rng

    def load_it() -> object:
        runner.load({"files": []}, b"")
        return runner.entries

    def timed() -> object:
        for flag in (sync_page.READY, sync_page.DONE):
            runner.page.flags[flag] = rng.choice((runner._sequence + 1, 0, 1 << 63))
        return runner.timed_call({})

    def capacity() -> object:
        for fd in runner.reserve_inputs(rng.randrange(1, 1 << 20)):
            os.close(fd)
        return None

    def built() -> object:
        frame = runner.child.channel.receive(time.monotonic() + LIMITS.call_timeout_s)
        for fd in frame.fds:
            os.close(fd)
        return libraries_of(frame)

    return {
        "call": lambda: runner.call({"base": 0}),
        "weights": lambda: runner.read_weights([]),
        "load": load_it,
        "timed": timed,
        "room": capacity,
        "built": built,
        "end": lambda: runner.end(LIMITS.exit_s),
    }


def frames(count: int = FRAMES, seed: int = SEED) -> list[str]:
    """Send `count` random frames to runners of the supervisor; return the failures."""
    rng = random.Random(seed)
    missed: list[str] = []
    descriptors = len(os.listdir("/proc/self/fd"))
    sent = 0
    while sent < count:
        hostile = HostileRunner(rng)
        name, read = rng.choice(list(readers(hostile).items()))
        data = [frame(rng) for _ in range(rng.randrange(1, 4))]
        sent += len(data)
        hostile.send(b"".join(data))
        if rng.random() < 0.9:
            hostile.theirs.shutdown(socket.SHUT_WR)
        missed += _exchange(f"{name} at frame {sent}", read)
        hostile.close()
    left = len(os.listdir("/proc/self/fd")) - descriptors
    return missed + ([f"{left} file descriptors left"] if left > 0 else [])


def _exchange(name: str, step: Callable[[], object]) -> list[str]:
    try:
        with within(HANG_S):
            step()
    except EvaluationEnded as ended:
        return _unwritable(name, ended)
    except OURS:
        return []
    except Hung:
        return [f"{name}: hung"]
    except Exception:  # noqa: BLE001 - the bar reports any exception
        return [f"{name}: {traceback.format_exc(limit=-3)}"]
    return []


def _unwritable(name: str, ended: EvaluationEnded) -> list[str]:
    """Return why an outcome cannot be written into a report; empty if it can."""
    try:
        ended.outcome.to_json()
    except ValueError as error:
        return [f"{name}: its outcome cannot be written: {error}"]
    return []


def sources() -> list[tuple[Path, Problem]]:
    """Return every candidate file of the repository with its problem."""
    found = [
        (path, find_problem(path.parent.parent.name))
        for path in sorted(BUNDLED.glob("*/candidates/*"))
        if path.suffix in (".py", ".cpp")
    ]
    for kind in ("hacks", "honest"):
        paths = sorted(p for p in (CORPUS / kind).iterdir() if p.suffix in (".py", ".cpp"))
        for path in paths:
            with suppress(ConfigError):
                found.append((path, read_header(path).problem()))
    return found


def spoiled(rng: random.Random, text: bytes, other: bytes) -> bytes:
    """Return a file that is truncated, mixed with another, or partly overwritten."""
    start, size = rng.randrange(len(text) + 1), rng.randrange(1, 200)
    noise = rng.choice((rng.randbytes(size), b"\0", b"(" * 3000, b"\xf0\x9f\x98\x80", b"\\\n" * 99))
    lines = text.splitlines(keepends=True)
    rng.shuffle(lines)
    makers: list[Callable[[], bytes]] = [
        lambda: text[:start],
        lambda: text[:start] + text[start + size :],
        lambda: text[:start] + noise + text[start:],
        lambda: text[:start] + other[start:],
        lambda: text[:start] + text[start:].replace(b" ", b"", 5),
        lambda: bytes(byte if rng.random() < 0.99 else rng.randrange(32, 127) for byte in text),
        lambda: b"".join(lines),
        lambda: rng.randbytes(rng.randrange(400)),
        lambda: text.replace(b"return", rng.choice((b"yield", b"raise", b"del", b"return -")), 1),
    ]
    return rng.choice(makers)()


def read_file(path: Path, problem: Problem) -> Candidate | None:
    """Read a candidate file as far as the command line does without running it."""
    files = read_files(str(path))
    features = static_features(files)
    features.to_json()
    made = make_candidate(files, problem)
    candidate = made[0] if isinstance(made, tuple) else made
    candidate.to_json()
    if isinstance(made, tuple):
        return None
    load_plugin("languages", candidate.language).plan(candidate)
    return candidate


def files(count: int = FILES, judged: int = JUDGED, seed: int = SEED) -> list[str]:
    """Read `count` damaged candidate files and evaluate some of them; return the failures."""
    rng = random.Random(seed)
    known = sources()
    usable: list[tuple[str, Candidate, Problem]] = []
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            (path, problem), (other, _) = rng.choice(known), rng.choice(known)
            suffix = path.suffix if rng.random() < 0.9 else rng.choice((".py", ".cpp", ".cu", ".h"))
            spot = Path(folder) / f"candidate{suffix}"
            spot.write_bytes(spoiled(rng, path.read_bytes(), other.read_bytes()))
            found: list[Candidate | None] = []
            name = f"file {number} ({path.name})"
            missed += _exchange(name, lambda s=spot, p=problem, f=found: f.append(read_file(s, p)))  # type: ignore[misc]
            usable += [(name, item, problem) for item in found if item is not None]
    return missed + _judge(rng.sample(usable, min(judged, len(usable))))


def _judge(chosen: list[tuple[str, Candidate, Problem]]) -> list[str]:
    if not chosen:
        return []
    limits = {"load_s": 5, "call_timeout_s": 5, "exit_s": 2, "build_s": 40, "total_timeout_s": 40}
    overrides = [f"eval.limits.{name}={tolerance}" for name, tolerance in limits.items()]
    settings = load(overrides=["eval.timing.enabled=false", *overrides], environ={})
    missed = []
    with executor() as local:
        for name, candidate, problem in chosen:
            request = build_request(candidate, problem, settings)
            start = time.monotonic()
            verdict: str = "-"
            try:
                with within(JUDGED_S):
                    verdict = local.evaluate(request).verdict
            except (TilewrightError, Hung) as error:
                missed.append(f"{name}: {type(error).__name__}: {str(error)[-1500:]}")
            print(f"    {name:44} {verdict:10} {time.monotonic() - start:5.1f} s", flush=True)
    return missed


def run(only: str = "") -> list[Bar]:
    """Send frames, read files, and evaluate some of them."""
    bars = []
    wanted = "0 hangs, 0 foreign exceptions"
    for name, step, what in (
        ("frames", frames, f"{FRAMES} frames"),
        ("candidate files", files, f"{FILES} files, {JUDGED} of them judged"),
    ):
        if only in name:
            missed = step()
            for item in missed[:10]:
                print(f"MISS {item}", flush=True)
            seen = f"{len(missed)} in {what}"
            bars.append(Bar(f"fuzz: {name}", wanted, seen, not missed, {"missed": missed}))
    return bars


if __name__ == "__main__":
    sys.exit(finish(run(sys.argv[1] if len(sys.argv) > 1 else "")))
