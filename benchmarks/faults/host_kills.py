"""Bar: processes of warm hosts are killed at random moments, and no other client loses its verdict.

In each round two clients evaluate at once, each with a supervisor of one host. At a random moment
the host, one of its supervisors, or the first client is killed.
`python -m benchmarks.faults.host_kills --kills 10 --seed 3` makes another number of rounds.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.bars import Bar, finish
from benchmarks.process_tree import (
    alive,
    descendants,
    family,
    identities,
    is_supervisor,
    until,
)
from tilewright.evaluator.processes.prefork import lease_folder
from tilewright.executors.host_connection import running_hosts, stop_host
from tilewright.executors.host_messages import HostStatus
from tilewright.records.file_lock import try_lock

KILLS = 100
VICTIMS = ("host", "supervisor", "client")
"""Each round kills the next one of these processes."""
MAX_KILL_S = 3.0
"""Latest moment of a kill; a client needs about as long."""
CLIENT = """
import sys
from tilewright import evaluate
source = "def softmax(x):\\n    return x.softmax(-1)\\n# " + sys.argv[1]
settings = {"host": "always", "home": sys.argv[2], "eval.timing.enabled": False}
print(evaluate(source, "softmax", config=settings).verdict)
"""


@dataclass
class Seen:
    """The losses that the rounds have shown. Lifetime: the bar."""

    lost: list[str] = field(default_factory=list)
    """Clients that were not killed and gave no verdict, or more than one."""
    processes: set[tuple[int, int]] = field(default_factory=set)
    """Every process that was found below a host, with its start."""
    left: set[tuple[int, int]] = field(default_factory=set)
    """Those that lived on after their host and their clients."""
    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VICTIMS, 0))


def _host(home: Path) -> HostStatus | None:
    return next((state for _, state in running_hosts() if state.home == str(home)), None)


def _start(home: Path, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CLIENT, name, str(home)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=home
    )


def _victim(kind: str, state: HostStatus | None, client: int) -> int | None:
    if kind == "client":
        return client
    if state is None or kind == "host":
        return state.pid if state is not None else None
    return min(filter(is_supervisor, descendants(state.pid)), default=None)


def play_round(home: Path, number: int, choices: random.Random, seen: Seen) -> None:
    """Evaluate twice at once, kill one process at a random moment, and note what is lost."""
    kind = VICTIMS[number % len(VICTIMS)]
    clients = [_start(home, f"{number}-{which}") for which in "ab"]
    time.sleep(choices.uniform(0.2, MAX_KILL_S))
    state = _host(home)
    below = identities(family(state.pid)) if state is not None else set()
    victim = _victim(kind, state, clients[0].pid)
    if victim is not None and clients[1].poll() is None:
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
            seen.kills[kind] += 1
    seen.processes |= below
    for which, client in enumerate(clients):
        said, errors = client.communicate(timeout=300)
        killed = kind == "client" and which == 0 and client.returncode == -signal.SIGKILL
        if not killed and said.split() != ["correct"]:
            seen.lost.append(f"{number} {kind}: {said!r} {errors[-300:]}")
    if kind == "host" and victim is not None and not until(lambda: not living(below)):
        seen.left |= living(below)


def play(home: Path, kills: int, seed: int) -> Seen:
    """Play rounds until so many processes were killed, then stop the last host."""
    choices, seen, number = random.Random(seed), Seen(), 0
    while sum(seen.kills.values()) < kills and number < 2 * kills:
        play_round(home, number, choices, seen)
        number += 1
        if number % 10 == 0:
            print(f"round {number}: {seen.kills}, lost {len(seen.lost)}", flush=True)
    for path, state in list(running_hosts()):
        if state.home == str(home):
            seen.processes |= identities(family(state.pid))
            stop_host(path)
    until(lambda: not living(seen.processes))
    seen.left |= living(seen.processes)
    return seen


def living(processes: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return those processes that still run."""
    return identities(alive(pid for pid, _ in processes)) & processes


def _held_leases() -> list[str]:
    """Return the leases of cores that some process holds."""
    held = []
    for path in lease_folder().glob("cpu-*.lock"):
        with path.open("a", encoding="ascii") as file:
            # Another evaluation of this machine may have it for some seconds.
            if not until(lambda file=file: try_lock(file), 60):  # type: ignore[misc]
                held.append(path.name)
    return held


def run(only: str = "", kills: int = KILLS, seed: int = 1) -> list[Bar]:  # noqa: ARG001 - one table
    """Return the bars."""
    with tempfile.TemporaryDirectory(prefix="host-kills-") as folder:
        seen = play(Path(folder), kills, seed)
    made = sum(seen.kills.values())
    held = _held_leases()
    for line in seen.lost:
        print(line)
    print(seen.kills)
    return [
        Bar(
            "warm host: verdicts of other clients",
            f"none lost, {kills} kills",
            f"{len(seen.lost)} lost, {made} kills",
            not seen.lost and made == kills,
        ),
        Bar(
            "warm host: processes and leases",
            "none left",
            f"{len(seen.left)} of {len(seen.processes)} processes, {len(held)} leases left",
            not seen.left and not held,
        ),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    return finish(run(kills=options.kills, seed=options.seed))


if __name__ == "__main__":
    sys.exit(main())
