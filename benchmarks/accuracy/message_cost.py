"""Bar: microseconds per round trip of a judge message over a socket pair.

A round trip encodes, sends, receives and decodes a request, then its answer. One thread holds both
ends, so that no context switch is measured. `python -m benchmarks.accuracy.message_cost` measures
this checkout. `--baseline FOLDER` names another checkout, which is measured in turn with this one.
The bar is then the additional cost of one message, half of the difference of two round trips.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.bars import ROOT, Bar, finish

FRAME_MODULES = ("tilewright.wire.frames", "tilewright.contestant.frames")
"""Modules with a `Channel`, the newest first. A checkout has one: a9ccb78 has the second."""
TRIPS = 2000
"""Round trips of each message in one process: about half a second for all of them."""
ABBA_BLOCKS = 3
"""Blocks of baseline, this checkout, this checkout, baseline: six processes for each of the two."""
MAX_ROUND_TRIP_US = 250.0
"""Most microseconds of one message and its answer.

The slowest takes about 75 us on two cores; the rest allows for load.
"""
MAX_ADDED_US = 20.0
"""Most microseconds of a message beyond the baseline's.

Two calls on the same values take five messages; a short call lasts 50 us.
"""

TENSOR = {"dtype": "float32", "shape": [4096, 1024], "strides": [1024, 1], "offset": 0}
VERDICT: dict[str, Any] = {"wrong": None, "message": "", "error": 0.125}
RIGHT: dict[str, Any] = {**VERDICT, "mutated": [], "misplaced": []}
MESSAGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sample": (
        {
            "sample": "12",
            "params": {"rows": 4096, "cols": 1024, "dtype": "float32"},
            "variation": "heavy tail",
            "seed": 0x5EED5EED5EED5EED,
            "forward_seed": 0x5EED5EED,
            "timed": False,
        },
        {
            "size": 1 << 24,
            "slot_bytes": 1 << 24,
            "tree": {"tuple": [TENSOR, TENSOR, 1e-05]},
            "grads": [],
            "grad_outputs": [],
            "outputs": [TENSOR],
        },
    ),
    "renew": (
        {
            "sample": "12",
            "seed": 0x5EED5EED5EED5EED,
            "forward_seed": 0x5EED5EED,
            "variation": "heavy tail",
            "varied": False,
        },
        {"fresh": True, "tree": {"tuple": [TENSOR, TENSOR, 1e-05]}},
    ),
    "publish": ({"sample": "12", "runner": "candidate", "base": 1 << 24}, {"written": True}),
    "check": (
        {
            "sample": "12",
            "runner": "candidate",
            "outputs": [{**TENSOR, "address": 0x7F5A00000000}],
        },
        RIGHT,
    ),
    "timed": (
        {
            "sample": "12",
            "runner": "candidate",
            "base": 1 << 24,
            "addresses": [0x7F5A00000000],
            "call": 40,
            "held": [31, 37, 39],
            "dropped": [37],
            "look": [[512 * place, 512 * place + 512] for place in range(16)],
            "keep": True,
            "expect": False,
            "compare": False,
        },
        RIGHT,
    ),
}
"""Request and answer of the most frequent messages, in the sizes of a softmax problem."""


def measure() -> dict[str, float]:
    """Return the median round trip of each message in microseconds, for the imported checkout."""
    channel_of = _frames().Channel
    ends = socket.socketpair()
    client, judge = channel_of(ends[0]), channel_of(ends[1])
    table = {}
    for kind, (request, answer) in MESSAGES.items():
        times = [_trip_us(client, judge, kind, request, answer) for _ in range(TRIPS)]
        table[kind] = statistics.median(times)
    client.close()
    judge.close()
    return table


def _trip_us(
    client: Any,  # noqa: ANN401 - a channel of this checkout or of the baseline
    judge: Any,  # noqa: ANN401 - as above
    kind: str,
    request: dict[str, Any],
    answer: dict[str, Any],
) -> float:
    start = time.perf_counter_ns()
    client.send(kind, request)
    received = judge.receive(time.monotonic() + 30.0)
    judge.send("answer", answer)
    returned = client.receive(time.monotonic() + 30.0)
    end = time.perf_counter_ns()
    if (received.kind, received.fields, returned.fields) != (kind, request, answer):
        raise AssertionError(f"{kind} arrived with other fields than were sent")
    return (end - start) / 1000


def _frames() -> Any:  # noqa: ANN401 - a module of this checkout or of the baseline
    for name in FRAME_MODULES:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError(f"this checkout has none of {', '.join(FRAME_MODULES)}")


def measured(checkout: Path) -> dict[str, float]:
    """Measure a checkout in a process of its own; the other path serves `benchmarks` alone."""
    source = checkout / "src"
    command = [sys.executable, "-m", "benchmarks.accuracy.message_cost", "--measure", str(source)]
    path = os.pathsep.join([str(source), str(ROOT)])
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{checkout} cannot be measured: {done.stderr[-1000:]}")
    table: dict[str, float] = json.loads(done.stdout)
    return table


def run(only: str = "", *, baseline: Path | None = None) -> list[Bar]:
    """Measure every message whose kind contains `only`, and return one bar for each."""
    order = [baseline, ROOT, ROOT, baseline] if baseline else [ROOT]
    tables = [(item, measured(item)) for item in order * ABBA_BLOCKS if item is not None]
    bars = []
    for kind in (kind for kind in MESSAGES if only in kind):
        ours = statistics.median([table[kind] for item, table in tables if item == ROOT])
        details = {"round_trip_us": ours}
        if baseline is None:
            held, wanted = ours <= MAX_ROUND_TRIP_US, f"<= {MAX_ROUND_TRIP_US:g} us a round trip"
            seen = f"{ours:.1f} us"
        else:
            theirs = statistics.median([table[kind] for item, table in tables if item != ROOT])
            added = (ours - theirs) / 2
            held, wanted = added <= MAX_ADDED_US, f"<= {MAX_ADDED_US:g} us a message added"
            seen = f"{added:+.1f} us (round trip {ours:.1f}, baseline {theirs:.1f})"
            details |= {"baseline_round_trip_us": theirs, "added_us": added}
        bars.append(Bar(f"message cost: {kind}", wanted, seen, held, details))
    return bars


def main() -> int:
    """Measure one checkout as a child process, or run the bar and print its rows."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.message_cost", description=__doc__
    )
    parser.add_argument("--baseline", type=Path, help="another checkout to compare with")
    parser.add_argument("--match", default="", help="only messages whose kind contains this")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        place = Path(_frames().__file__).resolve()
        if not place.is_relative_to(options.measure.resolve()):
            parser.error(f"{place} is not a file of {options.measure}")
        print(json.dumps(measure()))
        return 0
    return finish(run(options.match, baseline=options.baseline and options.baseline.resolve()))


if __name__ == "__main__":
    sys.exit(main())
