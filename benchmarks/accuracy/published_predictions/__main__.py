"""The steps of `python -m benchmarks.accuracy.published_predictions`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from benchmarks.accuracy.published_predictions.clone import (
    SETS,
    Prediction,
    matched_otherwise,
    read_predictions,
    read_tests,
    recorded_files,
)
from benchmarks.accuracy.published_predictions.comparison import (
    Compared,
    bars,
    tables,
    tests_of,
)
from benchmarks.accuracy.published_predictions.kernelbenchx import recorded
from benchmarks.accuracy.published_predictions.rules import Evidence
from benchmarks.accuracy.published_predictions.scripts import (
    GOLD,
    Task,
    gold_predictions,
    read_outcomes,
    run_scripts,
    write_interpreter,
    write_outcomes,
)
from benchmarks.bars import Bar, finish
from tilewright.config import load
from tilewright.errors import ProblemError
from tilewright.problems.imported_sets import find_problems
from tilewright.records import Problem
from tilewright.records.event_log import read_events, turns_of


def candidates_file(work: Path, group: str) -> Path:
    """Return the path of the candidates of a group."""
    return work / f"candidates-{group}.jsonl"


def prepare(options: argparse.Namespace) -> int:
    """Write a file of candidates for each group; return 1 if a prediction was matched otherwise."""
    differing: list[str] = []
    options.work.mkdir(parents=True, exist_ok=True)
    for group in options.groups:
        if group == "x":
            pairs = recorded(options.clone)
            write_outcomes(options.work, [outcome for _, outcome in pairs])
            models = _by_model([item for item, _ in pairs])
        else:
            models = _predictions(options, group, differing)
        rows = [_row(item, sample) for sample, own in enumerate(models) for item in own]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        candidates_file(options.work, group).write_text(text, encoding="utf-8")
        print(f"{group}: {len(rows)} predictions of {len(models)} models or rounds")
    print("\n".join(differing), end="\n" if differing else "")
    return 1 if differing else 0


def _predictions(
    options: argparse.Namespace, group: str, differing: list[str]
) -> list[list[Prediction]]:
    """Return the predictions of each model that was chosen, and note those matched otherwise."""
    problems, found = _imported([group]), []
    for model, path in recorded_files(options.clone, group):
        if not any(fnmatch(model, f"{group}/{pattern}") for pattern in options.models):
            continue
        try:
            found.append(read_predictions(options.clone, model, path))
        except ProblemError as error:
            print(f"left out: {error}")
        else:
            differing += matched_otherwise(found[-1], path, problems)
    return found


def _by_model(items: Sequence[Prediction]) -> list[list[Prediction]]:
    models = dict.fromkeys(item.model for item in items)
    return [[item for item in items if item.model == model] for model in models]


def _row(item: Prediction, sample: int) -> dict[str, object]:
    named = {"problem": item.problem, "sample": sample, "model": item.model, "file": item.file}
    return {**named, "code": item.code}


def read_candidates(work: Path, groups: Sequence[str]) -> list[tuple[str, Prediction]]:
    """Return each prediction with its id in a run of `bench`."""
    found = []
    for group in groups:
        path = candidates_file(work, group)
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            row = json.loads(line)
            identity = f"{row['problem']}#{row['sample']}"
            found.append((identity, Prediction(row["model"], row["file"], row["code"])))
    return found


def scripts(options: argparse.Namespace) -> int:
    """Run the benchmark's scripts; return 3 if files are left."""
    work, on_cpu = options.work, options.device == "cpu"
    write_interpreter(work, options.limit_s, on_cpu=on_cpu)
    gpus = [""] if on_cpu else options.device.split(",")
    items = [item for _, item in read_candidates(work, options.groups)]
    items += [item for group in options.groups for item in gold_predictions(options.clone, group)]
    tasks = [
        Task(options.clone.resolve(), work.resolve(), item, gpus[number % len(gpus)])
        for number, item in enumerate(items)
    ]
    left = run_scripts(tasks, work, workers=options.workers, seconds=options.seconds)
    print(f"{len(tasks) - left} of {len(tasks)} files are done")
    return 3 if left else 0


def compare(options: argparse.Namespace) -> int:
    """Print accuracies by model, each verdict that differs, and the bars; return 1 if one fails."""
    judged = {turn.ask.id: turn for run in options.runs for turn in turns_of(read_events(run))}
    outcomes = read_outcomes(options.work)
    known = {problem.id: problem for problem in _imported(options.groups)}
    rows, unfinished = [], 0
    for identity, item in read_candidates(options.work, options.groups):
        script, turn = outcomes.get((item.model, item.file)), judged.get(identity)
        problem = known.get(item.problem)
        if script is None or (problem is not None and turn is None):
            unfinished += 1
            continue
        verdicts = {one.protocol: one for one in turn.judgements} if turn else {}
        gold = outcomes.get((f"{item.group}/{GOLD}", item.file))
        tests = tests_of(read_tests(options.clone, item))
        evidence = Evidence(script, verdicts.get("official"), problem, item.code, tests, gold)
        rows.append(Compared(item.model, item.file, evidence, verdicts.get("strict")))
    print(tables(rows))
    print(f"\n{len(rows)} predictions compared, {unfinished} wait for a script or a verdict")
    return finish([*bars(rows), Bar("not compared", "0", str(unfinished), not unfinished)])


def _imported(groups: Sequence[str]) -> list[Problem]:
    home = load(environ=os.environ).home
    return [problem for group in groups for problem in find_problems(SETS[group], home)]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    for name, run in (("prepare", prepare), ("scripts", scripts), ("compare", compare)):
        step = steps.add_parser(name, help=run.__doc__)
        step.set_defaults(run=run)
        step.add_argument("clone", type=Path)
        step.add_argument("work", type=Path)
        step.add_argument("--groups", nargs="+", choices=SETS, default=["g", "t"])
        if name == "prepare":
            step.add_argument("--models", nargs="+", default=["*"], help="patterns of file names")
        if name == "scripts":
            step.add_argument("--device", default="0", help="`cpu`, or GPUs such as 0,1")
            step.add_argument("--workers", type=int, default=1)
            step.add_argument("--seconds", type=float, default=540, help="start no file after it")
            step.add_argument("--limit-s", type=int, default=60, help="limit of one run of a file")
        if name == "compare":
            step.add_argument("runs", type=Path, nargs="+", help="run folders of `bench`")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one step; `None`: the one on the command line."""
    options = _options(arguments)
    return int(options.run(options))


if __name__ == "__main__":
    sys.exit(main())
