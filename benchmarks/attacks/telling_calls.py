"""Bar: no candidate can tell which of its timed calls enter the ratio.

A candidate notes what Python in the runner can read in each call (`telling_spy`). The supervisor's
own record says which calls entered the ratio; the others were on input variations. Classifiers
learn from one half of the calls and guess the other. They also know which earlier calls were on
variations, because a candidate can read the values of these. And they know how many calls of the
baseline came since the last call, because gaps show it on a quiet machine.

Calls of the stage correctness and of the warm-up are not among them: their number tells them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

from benchmarks.bars import Bar, finish
from tilewright.errors import TilewrightError
from tilewright.evaluator.devices.devices import find_device
from tilewright.evaluator.pipeline.run import evaluate
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.runners.cpu_accounting import CallTiming
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.pool import RunnerPool
from tilewright.evaluator.timing.blocks import CaseTimer
from tilewright.evaluator.timing.case_timings import TimedCall
from tilewright.problems.candidates import make_candidate
from tilewright.problems.loader import parse_problem
from tilewright.records import Baseline, EvalRequest, Limits, SourceFile, TimingPlan

SPY = Path(__file__).with_name("telling_spy.py")
MARK = "seen:"
"""Start of each line that the spy prints."""
MAX_BALANCED_ACCURACY = 0.55
"""A guess is 0.5. Over 2,000 calls, of which a tenth are on variations, it varies by 0.02."""
MIN_FEATURES, MIN_CALLS = 30, 2000
BLOCKS = 520
"""Blocks of each problem. At least half are made: 520 calls that enter the ratio, and some 45 on
variations."""
STDOUT_BYTES = 16 << 20
GAP = "gap us"
"""The reading that shows how long the process waited for a call."""
RECENT = 4
"""Earlier calls of which a classifier knows the kind and the gap before them."""

PROBLEM = """
import torch

ENTRY = "work"
CASES = [{{"name": "one", "n": 64}}]


def inputs(case, generator):
    return {inputs}


def reference(x, y):
    return {expression}
"""
PAIR = "tuple(torch.randn(case['n'], {cols}, generator=generator) for _ in range(2))"
PROBLEMS = {
    "elements": ("torch.tanh(x) * 2 + y", PAIR.format(cols=64)),
    "product": ("x @ y", PAIR.format(cols=64)),
    "rows": ("(x * y).sum(1)", PAIR.format(cols=2048)),
    "sorted": ("torch.sort(x, dim=1).values + y", PAIR.format(cols=128)),
}
"""Expression and inputs of each problem."""


@dataclass(frozen=True)
class SeenCall:
    """The readings of a candidate in one timed call; `varied` tells of an input variation."""

    problem: str
    process: int
    varied: bool
    readings: dict[str, float]


@dataclass
class Record:
    """The supervisor's record of an evaluation. Lifetime: the evaluation."""

    kinds: dict[tuple[int, int], tuple[bool, int]] = field(default_factory=dict)
    """Whether a call was on a variation, and how many calls of the baseline came since the last
    one, by the process of the candidate and the number of the call."""
    between: int = 0
    """Calls of the baseline since the candidate's last call."""
    printed: dict[int, str] = field(default_factory=dict)
    """The text that each process of the candidate printed."""


@contextmanager
def observed() -> Iterator[Record]:
    """Record the timed calls of evaluations in this process."""
    seen = Record()
    record, keep = CaseTimer._record, RunnerPool.record_output

    def note_call(timer: CaseTimer, call: TimedCall, timed: CallTiming) -> None:
        seen.between += 1
        if call.name == "candidate":
            runner: Runner = timer.pool.runners[call.name]
            seen.kinds[runner.child.pid, runner._sequence] = (call.varied, seen.between - 1)
            seen.between = 0
        record(timer, call, timed)

    def note_output(pool: RunnerPool, name: str) -> None:
        if name == "candidate" and name in pool.runners:
            child = pool.runners[name].child
            seen.printed[child.pid] = child.output.text()
        keep(pool, name)

    with (
        patch.object(CaseTimer, "_record", note_call),
        patch.object(RunnerPool, "record_output", note_output),
    ):
        yield seen


def seen_calls(host: DeviceHost, problem: str, blocks: int) -> list[SeenCall]:
    """Evaluate the spy on a problem; return its timed calls in order."""
    with observed() as record:
        report = evaluate(host, request(host, problem, blocks), _ignore, _go_on, checks=())
    host.wait_closed()
    if report.verdict != "correct":
        raise TilewrightError(f"{problem}: the spy is {report.verdict}, {report.outcome}")
    found = []
    for process, text in record.printed.items():
        for line in text.splitlines():
            if not line.startswith(MARK):
                continue
            readings = json.loads(line.removeprefix(MARK))
            known = record.kinds.get((process, int(readings["sequence"])))
            if known is not None:
                # On a quiet machine the gap before a call shows it.
                readings["baseline calls between"] = known[1]
                found.append(SeenCall(problem, process, known[0], readings))
    return found


def request(host: DeviceHost, problem: str, blocks: int) -> EvalRequest:
    """Return the evaluation of the spy on a problem."""
    expression, inputs = PROBLEMS[problem]
    text = PROBLEM.format(inputs=inputs, expression=expression)
    given = parse_problem(text, problem, "work", "the bar's problem")
    spy = SPY.read_text(encoding="utf-8")
    spy += f"\n\ndef computed(x, y):\n    return {expression}\n\n\nwork = watched(computed)\n"
    made = make_candidate((SourceFile(path="spy.py", text=spy),), given)
    if isinstance(made, tuple):
        raise TypeError(made[1])
    return EvalRequest(
        problem=given,
        candidate=made,
        baselines=(Baseline(name="eager", kind="eager"),),
        timing=TimingPlan(min_blocks=blocks, max_blocks=blocks, max_s=100.0, extra_replicates=0),
        limits=Limits(stdout_bytes=STDOUT_BYTES),
        device=host.device.name,
    )


def _ignore(*_: object) -> None:
    """Take no notice of an event."""


def _go_on() -> None:
    """Let the evaluation go on."""


def table(calls: list[SeenCall]) -> tuple[list[list[float]], list[bool], list[float], list[str]]:
    """Return features, kinds and places of calls, and the names of the features.

    The features of a call are its readings, their changes since the process's last call, the ranks
    of both within the process, and which of the last calls were on variations.
    """
    names = list(calls[0].readings)
    named = [*names, *(f"change of {name}" for name in names)]
    rows: list[list[float]] = []
    kinds, places = [], []
    for process in dict.fromkeys((call.problem, call.process) for call in calls):
        mine = [call for call in calls if (call.problem, call.process) == process]
        plain = [
            [*now.readings.values(), *(now.readings[name] - last.readings[name] for name in names)]
            for last, now in pairwise(mine)
        ]
        ranked = [_ranks(column) for column in zip(*plain, strict=True)]
        gap = named.index(GAP)
        for at, call in enumerate(mine[1:]):
            recent = [float(mine[max(at - back, 0)].varied) for back in range(RECENT)]
            gaps = [ranked[gap][max(at - back, 0)] for back in range(1, RECENT)]
            rows.append([*plain[at], *(column[at] for column in ranked), *recent, *gaps])
            kinds.append(call.varied)
            places.append(at / len(mine))
    named += [f"rank of {name}" for name in named]
    named += [f"kind {back + 1} calls ago" for back in range(RECENT)]
    return rows, kinds, places, [*named, *(f"gap {back} calls ago" for back in range(1, RECENT))]


def _ranks(column: Sequence[float]) -> list[float]:
    """Return the place of each value among all, from 0 to 1: machines differ in speed."""
    places = {value: place for place, value in enumerate(sorted(column))}
    return [places[value] / len(column) for value in column]


def bars_of(calls: list[SeenCall]) -> list[Bar]:
    """Train classifiers on the calls; return the bars, and print the strongest features."""
    # After the evaluations: a sandbox is forked from a process without numpy's threads.
    import numpy as np

    from benchmarks.attacks.telling_classifier import scores

    rows, kinds, places, names = table(calls)
    values, truth = np.asarray(rows), np.asarray(kinds)
    found = list(scores(values, truth, np.asarray(places), names))
    for score in found:
        print(f"{score.balanced:.3f} {score.name}: {', '.join(score.strongest)}", flush=True)
    worst = max(found, key=lambda score: score.balanced)
    readings = len(calls[0].readings)
    # A figure that is the same in all calls cannot tell them apart, but it is a figure.
    changing = int((values[:, :readings].std(axis=0) > 0).sum())
    details = {"scores": {score.name: score.balanced for score in found}, "changing": changing}
    return [
        Bar(
            "telling calls: balanced accuracy",
            f"at most {MAX_BALANCED_ACCURACY}",
            f"{worst.balanced:.3f} ({worst.name})",
            worst.balanced <= MAX_BALANCED_ACCURACY,
            details,
        ),
        Bar(
            "telling calls: readings per call",
            f"at least {MIN_FEATURES}",
            f"{readings}, of which {changing} change",
            readings >= MIN_FEATURES,
        ),
        Bar(
            "telling calls: calls",
            f"at least {MIN_CALLS}",
            f"{len(calls)}, {sum(kinds)} on variations",
            len(calls) >= MIN_CALLS,
        ),
    ]


def run(match: str = "", device: str = "cpu", blocks: int = BLOCKS, out: str = "") -> list[Bar]:
    """Evaluate the spy on each problem whose name contains `match`; return the bars."""
    calls: list[SeenCall] = []
    cores = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory(prefix="telling-") as folder:
        host = DeviceHost(Path(folder), find_device(device))
        try:
            for problem in PROBLEMS:
                if match in problem:
                    found = seen_calls(host, problem, blocks)
                    print(f"{problem}: {len(found)} calls", flush=True)
                    calls += found
        finally:
            host.close()
            os.sched_setaffinity(0, cores)
    if out:
        Path(out).write_text("".join(json.dumps(vars(call)) + "\n" for call in calls), "utf-8")
    return bars_of(calls)


def main() -> int:
    """Measure the bar on a device; return 1 if it is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--match", default="", help="only problems whose name contains this")
    parser.add_argument("--blocks", type=int, default=BLOCKS, help="blocks of each problem")
    parser.add_argument("--out", default="", help="write what was read in each call to this file")
    options = parser.parse_args()
    return finish(run(options.match, options.device, options.blocks, options.out))


if __name__ == "__main__":
    sys.exit(main())
