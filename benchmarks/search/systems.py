"""Bars: all strategies have one log for any hash seed, kills, lost evaluations, cost, races.

No device is needed: programs are those of SynthKernel-1.
"""

from __future__ import annotations

import gc
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import cast

from benchmarks.bars import ROOT, Bar
from benchmarks.search import racing
from benchmarks.search.system_runs import (
    EVALUATIONS,
    OPTIONS,
    log_digest,
    search,
    settings_of,
    strategies,
)
from tilewright.loop.driver import drive, replay
from tilewright.loop.history import RecordedHistory
from tilewright.loop.policies.base import Message
from tilewright.loop.policies.scripted import Scripted
from tilewright.loop.prompts import messages_of
from tilewright.loop.prompts.material import Material
from tilewright.loop.rollout import RolloutWorker
from tilewright.loop.run_state import begin_session
from tilewright.loop.strategies.base import Factory, Plan
from tilewright.loop.strategies.trajectory import LimitedTrajectory, TrajectoryLimits
from tilewright.records import Problem
from tilewright.records.base import digest_text
from tilewright.records.event_log import EventLog
from tilewright.records.events import Ask, Choice, Event, Reply, RequestsIssued, Turn, TurnFinished
from tilewright.registry import load as load_plugin
from tilewright.testing.strategy_checks import BEGUN, PROBLEM, LossyWorld, random_reply, score_of
from tilewright.testing.synth import OPTIMUM, render
from tilewright.testing.synth_world import SynthWorld

HASH_SEEDS = range(32)
WIDTHS = (1, 8)
KILLS = 100
PAUSE_MS = 2.0
"""Milliseconds of an evaluation in runs that are killed, so that some are always in flight."""
REPLAYED = 20_000
"""Requests of a long search, of which most are candidates."""
MAX_TURN_MS, MAX_REPLAY_S, MAX_GROWTH_MB = 5.0, 30.0, 100.0


def run(match: str = "") -> list[Bar]:
    """Measure the bars of the strategies whose names contain `match`."""
    names = [name for name in strategies() if match in name]
    bars = []
    measures: list[Callable[[], Bar]] = [
        *(partial(measure, names) for measure in (hash_seeds, kills, lost_evaluations)),
        partial(knowledge, names),
        partial(cost, names),
    ]
    if not match:
        measures += [racing.races, racing.selection_bias]
    for measure in measures:
        begun = time.monotonic()
        bars.append(measure())
        print(f"{bars[-1].row()} ({time.monotonic() - begun:.0f} s)", flush=True)
    return bars


def started(
    folder: Path, name: str, width: int, *, seed: str = "0", python: str = sys.executable
) -> str:
    """Run one search in a process with a hash seed; return the digest of its log."""
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    answer = subprocess.run(
        [python, "-m", "benchmarks.search.system_runs", str(folder), name, str(width), "0"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths},
    )
    if answer.returncode:
        raise RuntimeError(f"{name}, {width} at a time: {answer.stderr[-2000:]}")
    return answer.stdout.strip()


def hash_seeds(names: Sequence[str]) -> Bar:
    """Compare the logs of processes with different hash seeds, for each strategy and width.

    The variable `OTHER_PYTHON` names an interpreter of another version that has the base packages.
    Its logs are compared too.
    """
    other = os.environ.get("OTHER_PYTHON", "")
    jobs = [
        (name, width, seed, sys.executable)
        for name in names
        for width in WIDTHS
        for seed in HASH_SEEDS
    ]
    jobs += [(name, width, 0, other) for name in names for width in WIDTHS if other]

    def one(job: tuple[str, int, int, str]) -> tuple[str, int, str]:
        name, width, seed, python = job
        with tempfile.TemporaryDirectory() as folder:
            digest = started(Path(folder), name, width, seed=str(seed), python=python)
        return name, width, digest

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = set(pool.map(one, jobs))
    several = [key for key, count in Counter(item[:2] for item in found).items() if count > 1]
    version = ".".join(map(str, sys.version_info[:2]))
    if other:
        said = subprocess.run([other, "--version"], capture_output=True, text=True).stdout
        version += f" and {said.split()[-1]}"
    seen = f"{len(names)} strategies, {len(jobs)} logs, Python {version}; differ: {several or 0}"
    return Bar("systems: hash seeds", "one log per strategy and width", seen, not several)


def kills(names: Sequence[str]) -> Bar:
    """Kill searches at random moments, continue them, and compare with an undisturbed run."""
    draw, wrong, repeated, killed = random.Random(7), list[str](), 0, 0
    for place, name in enumerate(names, start=1):
        with tempfile.TemporaryDirectory() as folder:
            calm = Path(folder) / "calm"
            calm.mkdir()
            wanted = started(calm, name, 8)
            expected = len((calm / EVALUATIONS).read_text(encoding="utf-8").splitlines())
            while killed < KILLS * place / len(names):
                disturbed = Path(folder) / f"killed{killed}"
                disturbed.mkdir()
                count = _killed(disturbed, name, draw)
                killed += count
                if log_digest(disturbed) != wanted:
                    wrong.append(f"{name} after {count} kills")
                made = len((disturbed / EVALUATIONS).read_text(encoding="utf-8").splitlines())
                repeated = max(repeated, made - expected - 8 * count)
    seen = f"{killed} kills, {len(wrong)} other logs {wrong[:3]}; beyond those in flight {repeated}"
    wanted_text = "the log of an undisturbed run; at most 8 evaluations repeated per kill"
    return Bar("systems: kills", wanted_text, seen, not wrong and repeated <= 0)


def _killed(folder: Path, name: str, draw: random.Random) -> int:
    """Run a search that is killed several times; return how often."""
    command = [sys.executable, "-m", "benchmarks.search.system_runs", str(folder), name, "8"]
    count = 0
    for _ in range(4):
        process = subprocess.Popen(
            [*command, str(PAUSE_MS)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while process.poll() is None and not (folder / EVALUATIONS).exists():
            time.sleep(0.002)
        time.sleep(draw.uniform(0.0, 0.06))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            count += 1
        process.wait()
    started(folder, name, 8)
    return max(count, 1)


class OftenLostWorld(LossyWorld):
    """Loses evaluations, but makes each again until it is not lost. Lifetime: one run."""

    def __init__(self) -> None:
        self.lost = 0

    def evaluate(self, draft: Turn, problem: Problem) -> Turn:
        """Judge a draft; a lost evaluation is made once more, as the evaluator of a run does."""
        turn = super().evaluate(draft, problem)
        if turn.judgements[0].verdict != "unjudged":
            return turn
        self.lost += 1
        return SynthWorld.evaluate(self, draft, problem)


def lost_evaluations(names: Sequence[str]) -> Bar:
    """Lose one in ten evaluations, and compare the logs with those of undisturbed runs."""
    differ, lost = list[str](), 0
    for name in names:
        digests = []
        for world in (SynthWorld(), OftenLostWorld()):
            with tempfile.TemporaryDirectory() as folder:
                search(Path(folder), settings_of(name, 4), world)
                digests.append(log_digest(Path(folder)))
            lost += getattr(world, "lost", 0)
        if digests[0] != digests[1]:
            differ.append(name)
    seen = f"{lost} lost; logs that differ: {differ or 0}"
    return Bar("systems: lost evaluations", "no log differs", seen, not differ and lost > 0)


FACT = "a vector has 12345 lanes"
"""A planted fact, without which the writer of `knowledge` writes no correct program."""
MODULE = f"""---
title: Vectors of this machine
keywords: [reference, inputs, return, vector]
languages: [any]
devices: [any]
sources: [a planted fact]
---
On this machine {FACT}.
"""
RUNS = 100


class FormsWorld(SynthWorld):
    """SynthKernel-1 with the prompts of real searches. Lifetime: one run."""

    def prompt(self, material: Material) -> tuple[Message, ...]:
        """Return the messages of the request's form, documents among them."""
        return messages_of(material)


def knowledge(_: Sequence[str]) -> Bar:
    """Let a writer that needs a planted fact search with and without the knowledge base."""
    with tempfile.TemporaryDirectory() as text:
        base = Path(text) / "base"
        base.mkdir()
        (base / "index.md").write_text("- [Vectors of this machine](planted.md)\n")
        (base / "planted.md").write_text(MODULE)
        found = [_informed(Path(text) / f"with{n}", n, knowledge=base) for n in range(RUNS)]
        others = [_informed(Path(text) / f"without{n}", n) for n in range(RUNS)]
    right, named = (sum(item[place] for item in found) for place in (0, 1))
    wrong = sum(item[0] for item in others)
    seen = f"{right} with, {wrong} without; the log names the module in {named}"
    held = right >= 95 and wrong <= 5 and named == RUNS
    return Bar("systems: knowledge", ">= 95 of 100 with, <= 5 without", seen, held)


def _informed(folder: Path, seed: int, **more: object) -> tuple[bool, bool]:
    """Search once; return whether it found a correct program, and whether the log names the fact.

    The writer reads its prompt alone.
    """
    folder.mkdir()

    def write(messages: Sequence[Message], _: Ask) -> str:
        known = any(FACT in message.text for message in messages)
        return render(OPTIMUM if known else OPTIMUM._replace(fuse=4))

    settings = settings_of("greedy", 1, seed=seed, turns=4, **more)
    run = begin_session(folder, BEGUN, [PROBLEM], settings)
    worker = RolloutWorker(FormsWorld(), Scripted(write), {PROBLEM.id: PROBLEM}, run.strategy)
    with EventLog(folder, run.log_bytes) as log:
        turns = list(drive(run.strategy, worker.play, log, max_concurrency=1))
    digests = {digest for turn in turns for digest in turn.ask.documents}
    named = digest_text(MODULE) in digests
    return any(turn.judgements[0].verdict == "correct" for turn in turns), named


def cost(names: Sequence[str]) -> Bar:
    """Measure the time of a strategy per turn, the time of a replay, and the memory of its state.

    The memory is that of one more copy of the search, since the log is held here and not by a run.
    """
    slow, figures = list[str](), list[str]()
    for name in names:
        turn_ms, events = _long_search(name, REPLAYED)
        gc.collect()
        before, begun = _resident_mb(), time.monotonic()
        again = _strategy(name, REPLAYED)
        replay(again, events)
        replay_s, growth_mb = time.monotonic() - begun, _resident_mb() - before
        del again, events
        figures.append(f"{name} {turn_ms:.2f} ms {replay_s:.1f} s {growth_mb:.0f} MB")
        print(f"  {figures[-1]}", flush=True)
        if turn_ms > MAX_TURN_MS or replay_s > MAX_REPLAY_S or growth_mb > MAX_GROWTH_MB:
            slow.append(name)
    wanted = f"< {MAX_TURN_MS:g} ms a turn, replay < {MAX_REPLAY_S:g} s, < {MAX_GROWTH_MB:g} MB"
    return Bar("systems: cost", wanted, "; ".join(figures), not slow)


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1024 / 1024


def _strategy(name: str, turns: int) -> RecordedHistory:
    make = cast("Factory", load_plugin("strategies", name))
    plan = Plan(problem="synth/0", turns=turns, options=OPTIONS.get(name, {}))
    return RecordedHistory(
        LimitedTrajectory(make(plan, score_of), plan, score_of, TrajectoryLimits())
    )


def _long_search(name: str, turns: int) -> tuple[float, list[Event]]:
    """Answer all requests of a strategy without a worker; return ms per turn and the events."""
    strategy, world, events = _strategy(name, turns), SynthWorld(), list[Event]()
    problem = world.problems("synth")[0]
    spent, count = 0.0, 0
    while True:
        begun = time.perf_counter()
        asks = strategy.ask(8)
        spent += time.perf_counter() - begun
        if not asks:
            break
        events.append(RequestsIssued(limit=8, asks=tuple(asks)))
        for ask in asks:
            reply = Reply(text=random_reply((), ask))
            if ask.role == "choose":
                turn = Turn(ask=ask, reply=reply, choice=Choice(taken=0))
            elif ask.role == "say":
                turn = Turn(ask=ask, reply=reply)
            elif ask.role == "measure":
                earlier = strategy.turns[ask.parents[0]]
                update = {"ask": ask, "reply": None, "judgements": ()}
                code = earlier.code or (earlier.reply.text if earlier.reply else "")
                draft = earlier.model_copy(update={**update, "code": code})
                turn = world.evaluate(draft, problem)
            else:
                draft = world.draft(ask, problem, reply)
                turn = draft if ask.role == "draft" else world.evaluate(draft, problem)
            turn = strategy.settle(turn)
            events.append(TurnFinished(turn=turn))
            begun = time.perf_counter()
            strategy.tell(turn)
            spent += time.perf_counter() - begun
            count += 1
    return 1000 * spent / max(count, 1), events
