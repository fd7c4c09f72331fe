"""The census: evaluates the programs of a family that a store of verdicts lacks, and adds them.

It stops in time and continues where it stopped, so it may be spread over several invocations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from tilewright._version import __version__
from tilewright.config import Config
from tilewright.executors.factory import device_model
from tilewright.families.nano.compositions import composition_of
from tilewright.families.nano.program_slots import census
from tilewright.families.nano.program_text import render
from tilewright.records import Problem
from tilewright.records.events import EvalSummary
from tilewright.rl.book_world import ProgramEvaluator
from tilewright.rl.verdict_store import StoreKey, VerdictStore, agreeing

SAVED_S = 20.0
"""Seconds between two writes of the store: a killed census evaluates so much again."""


@dataclass(frozen=True)
class CensusResult:
    """The counts of one invocation."""

    evaluated: int
    unjudged: int
    left: int
    """Programs that the store still lacks."""


def store_key(settings: Config) -> StoreKey:
    """Return the key of verdicts under these settings, on the device that they name.

    A kernel of the program's own is required, as in `train rl`.

    Raises:
        InfrastructureError: the device is not here.
    """
    section = settings.eval
    rules = section.rules.model_copy(update={"require_custom_kernel": True})
    device = device_model(settings, section.device)
    return StoreKey(protocol=section.protocol, rules=rules, evaluator=__version__, device=device)


def judging_settings(settings: Config, key: StoreKey) -> Config:
    """Return settings under which programs are evaluated by the rules of a store."""
    section = settings.eval.model_copy(update={"rules": key.rules})
    return settings.model_copy(update={"eval": section})


def census_programs(problems: Iterable[Problem]) -> Iterator[tuple[Problem, str]]:
    """Yield the programs of the census, each with its problem."""
    for problem in problems:
        for program in census(composition_of(problem.id)):
            yield problem, render(program)


def take_census(
    store: VerdictStore,
    programs: Iterable[tuple[Problem, str]],
    evaluator: ProgramEvaluator,
    *,
    until: float,
    workers: int = 1,
    reached: Callable[[int, int], None] = lambda *_: None,
) -> CensusResult:
    """Evaluate the programs that the store lacks, until a time of `time.monotonic`.

    So many `workers` evaluate programs at the same time. The store is written every `SAVED_S`
    seconds, and at the end. If the evaluations of a program differ, only those of the worst
    verdict count (`agreeing`).
    """
    lacking = [item for item in programs if not store.evaluations(*item)]
    evaluated, unjudged, saved_at = 0, 0, time.monotonic()
    try:
        for item, summaries in _evaluations(lacking, evaluator, workers, until):
            for summary in agreeing(summaries):
                if summary.verdict == "unjudged":
                    unjudged += 1
                else:
                    store.add(*item, summary)
            evaluated += 1
            reached(evaluated, len(lacking))
            if time.monotonic() - saved_at > SAVED_S:
                store.save()
                saved_at = time.monotonic()
    finally:
        store.save()
    left = sum(not store.evaluations(*item) for item in lacking)
    return CensusResult(evaluated, unjudged, left)


def _evaluations(
    programs: Sequence[tuple[Problem, str]],
    evaluator: ProgramEvaluator,
    workers: int,
    until: float,
) -> Iterator[tuple[tuple[Problem, str], tuple[EvalSummary, ...]]]:
    """Yield programs with their evaluations as they end; none begins after a time."""
    left, running = iter(programs), dict[Future[tuple[EvalSummary, ...]], tuple[Problem, str]]()
    with ThreadPoolExecutor(workers) as pool:
        try:
            while True:
                while len(running) < workers and time.monotonic() < until:
                    if (item := next(left, None)) is None:
                        break
                    running[pool.submit(evaluator.evaluations, *item)] = item
                if not running:
                    return
                ended, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield running.pop(future), future.result()
        except BaseException:
            # The pool waits for the evaluations under way.
            evaluator.stop()
            raise
