"""Bars: no accepted task is lost while processes are killed, and disk and network fail.

The 500 evaluations are real, of `add_relu` without timing. 30 candidates are right, 15 are wrong,
15 raise in the call, and 440 are not valid Python, which ends them in the stage `build`. The bar
runs them without faults, then with faults by the embedded executor, then with faults on a Ray
cluster of three nodes on this machine: a head without devices, and two nodes that it kills.
"""

from __future__ import annotations

import collections
import contextlib
import os
import random
import sqlite3
import sys
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.bars import Bar, finish
from benchmarks.serve.faulty_server import Fault, World
from benchmarks.serve.ray_nodes import Nodes
from tilewright.config import load
from tilewright.executors.remote import RemoteExecutor
from tilewright.problems.requests import build_request
from tilewright.records import EvalRequest

KINDS = {
    "right": (30, "import torch\n\ndef add_relu(x, y):\n    return torch.relu(x + y)  # {}\n"),
    "wrong": (15, "import torch\n\ndef add_relu(x, y):\n    return torch.relu(x - y)  # {}\n"),
    "raises": (15, "def add_relu(x, y):\n    raise ValueError({})\n"),
    "not Python": (440, "def add_relu(x, y:\n    return {}\n"),
}
CLIENTS = 12
PATIENCE_S = 120.0
SEED = 20
RECOVERED_S = 60.0
"""Most seconds after a fault until all tasks have ended that were open at that moment."""


def requests() -> list[EvalRequest]:
    """Return the tasks, in an order that mixes their kinds."""
    settings = load(overrides=["eval.timing.enabled=false"], environ={})
    base = build_request(KINDS["right"][1].format(0), "add_relu", settings)
    made = []
    for count, text in KINDS.values():
        for number in range(count):
            file = base.candidate.files[0].model_copy(update={"text": text.format(number)})
            candidate = base.candidate.model_copy(update={"files": (file,)})
            made.append(base.model_copy(update={"candidate": candidate}))
    random.Random(SEED).shuffle(made)
    return made


@dataclass
class Outcome:
    """Verdicts of all tasks, and the recovery from each fault."""

    verdicts: list[str]
    seconds: float
    recovered: dict[str, list[float]] = field(default_factory=dict)
    """Seconds from each fault, or from its end, until all tasks had ended that were open then."""
    states: dict[str, int] = field(default_factory=dict)
    restarts: int = 0
    """Evaluations in addition to one per task."""


class Clients:
    """Clients that submit all tasks and record when each ended. Lifetime: one run."""

    def __init__(self, tasks: list[EvalRequest], url: str) -> None:
        self._remote = RemoteExecutor(url, patience_s=PATIENCE_S)
        self._pool = ThreadPoolExecutor(CLIENTS)
        self._lock = threading.Lock()
        self._open: set[int] = set()
        self.ended: dict[int, float] = {}
        work = enumerate(tasks)
        self.futures: list[Future[str]] = [
            self._pool.submit(self._judged, number, item) for number, item in work
        ]

    def _judged(self, number: int, request: EvalRequest) -> str:
        with self._lock:
            self._open.add(number)
        try:
            return self._remote.evaluate(request).verdict
        except Exception as error:  # noqa: BLE001 - the bar shows it as the verdict
            return f"{type(error).__name__}: {error}"
        finally:
            with self._lock:
                self._open.discard(number)
                self.ended[number] = time.monotonic()

    def open_now(self) -> set[int]:
        """Return the tasks that have not ended."""
        with self._lock:
            return set(self._open)

    def close(self) -> None:
        """Wait for all clients."""
        self._pool.shutdown()


def _run(world: World, tasks: list[EvalRequest], faults: list[Fault]) -> Outcome:
    start = time.monotonic()
    clients = Clients(tasks, world.url)
    hit: list[tuple[Fault, float, set[int]]] = []
    for number, fault in enumerate(faults):
        due = (number + 1) * len(tasks) // (len(faults) + 2)
        while len(clients.ended) < due:
            time.sleep(0.01)
        open_then = clients.open_now()
        over = world.inject(fault)
        hit.append((fault, over, open_then))
        print(f"    {len(clients.ended):3} ended: {fault}", flush=True)
    verdicts = [future.result() for future in clients.futures]
    clients.close()
    made = Outcome(verdicts, time.monotonic() - start)
    for name, over, open_then in hit:
        last = max((clients.ended[item] for item in open_then), default=over)
        made.recovered.setdefault(name, []).append(max(last - over, 0.0))
    # Close it here: a connection that is collected later would delete the log of the next store.
    with contextlib.closing(sqlite3.connect(world.store)) as store:
        made.states = dict(store.execute("select state, count(*) from tasks group by state"))
        made.restarts = store.execute("select sum(attempts) - count(*) from tasks").fetchone()[0]
    return made


def _bars(name: str, seen: Outcome, wanted: list[str]) -> list[Bar]:
    total = len(wanted)
    same = sum(a == b for a, b in zip(seen.verdicts, wanted, strict=True))
    done = seen.states.get("done", 0)
    all_done = done == total and sum(seen.states.values()) == total
    wrong = collections.Counter(
        str(a)[:150] for a, b in zip(seen.verdicts, wanted, strict=True) if a != b
    )
    slowest = {fault: max(seconds) for fault, seconds in seen.recovered.items()}
    text = ", ".join(f"{fault} {seconds:.1f} s" for fault, seconds in slowest.items())
    return [
        Bar(
            f"serve faults, {name}: accepted tasks with a result",
            f"all of {total}",
            f"{done} done of {sum(seen.states.values())} in {seen.seconds:.0f} s, "
            f"{seen.restarts} restarts",
            all_done,
            {"states": seen.states},
        ),
        Bar(
            f"serve faults, {name}: verdicts of the run without faults",
            f"all of {total}",
            str(same),
            same == total,
            {"wrong": dict(wrong)},
        ),
        Bar(
            f"serve faults, {name}: open tasks ended after",
            f"< {RECOVERED_S:g} s each",
            text,
            max(slowest.values()) < RECOVERED_S,
            {"seconds": seen.recovered},
        ),
    ]


BOTH: list[Fault] = ["server", "supervisor", "judge", "disk full", "locked", "network"]


def run(only: str = "") -> list[Bar]:
    """Run the tasks without faults, then with them: embedded, and on a Ray cluster."""
    tasks = requests()
    bars: list[Bar] = []
    with tempfile.TemporaryDirectory(prefix="faults") as place:
        home = Path(place) / "home"
        with World(Path(place) / "plain", home) as world:
            plain = _run(world, tasks, [])
        print(f"    without faults {plain.seconds:.0f} s", flush=True)
        held = collections.Counter(plain.verdicts)
        bars.append(
            Bar(
                "serve faults: without faults",
                "30 correct, 15 incorrect, 455 failed",
                ", ".join(f"{count} {name}" for name, count in held.items())[:300],
                held == {"correct": 30, "incorrect": 15, "failed": 455},
            )
        )
        if only in "embedded":
            with World(Path(place) / "embedded", home) as world:
                bars += _bars("embedded", _run(world, tasks, BOTH * 2), plain.verdicts)
        if only in "ray":
            bars += _on_ray(Path(place), tasks, plain.verdicts)
    return bars


def _on_ray(place: Path, tasks: list[EvalRequest], wanted: list[str]) -> list[Bar]:
    faults: list[Fault] = ["node", "actor", *BOTH]
    with Nodes(place / "node", count=2) as nodes, World(place / "ray", None, nodes) as world:
        bars = _bars("3 Ray nodes", _run(world, tasks, faults * 2), wanted)
    return bars


if __name__ == "__main__":
    os.chdir(tempfile.gettempdir())
    bars = run(sys.argv[1] if len(sys.argv) > 1 else "")
    for bar in bars:
        print(bar.name, bar.details)
    sys.exit(finish(bars))
