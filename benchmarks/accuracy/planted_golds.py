"""Gold implementations with one planted fault each, and the bar over their verdicts.

    tilewright bench tritonbench --candidates reference --out GOLDS --set eval.timing.enabled=false
    python -m benchmarks.accuracy.planted_golds make FILE.jsonl GOLDS/RUN
    tilewright bench tritonbench --candidates FILE.jsonl --out RUNS
    python -m benchmarks.accuracy.planted_golds bars FILE.jsonl RUNS/RUN

With several sets, name them after `--problems`. `make` then also writes FILE-SET.jsonl for each.
`make` needs a GPU and the imported sets. It draws from the golds that are `correct` in its runs: a
gold without a verdict gives none to its faults. It keeps a rewritten gold only if its outputs
differ on the benchmark's own inputs. So the judge has no part in the choice of faults, and a
rewriting that changes nothing does not count as one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from benchmarks.accuracy import gold_outputs
from benchmarks.accuracy.gold_faults import Fault, faults_of
from benchmarks.bars import Bar, finish
from tilewright.config import load
from tilewright.problems.imported_sets import find_problems
from tilewright.records import Problem
from tilewright.records.event_log import read_events, turns_of

WANTED, WANTED_IN_PLACE = 100, 30
"""Faults, and those of them in golds that return nothing and overwrite arguments."""
FOUND = 98
MOST_COMPARED = 48
"""Faults of one kind that `make` compares, in place and not: each takes seconds, most are kept."""
PROCESSES = 12
SEED = 20_261_126


def make(path: Path, addresses: Sequence[str], runs: Sequence[Path]) -> int:
    """Write `WANTED` faults, evenly over the kinds, or fewer if there are not as many."""
    drawn = random.Random(SEED)
    correct = correct_golds(runs)
    home = load(environ=os.environ).home
    found = [problem for address in addresses for problem in find_problems(address, home)]
    problems = [problem for problem in found if problem.id in correct]
    drawn.shuffle(problems)
    asked: list[tuple[Problem, Fault]] = []
    counts = Counter[tuple[str, bool]]()
    for problem in problems:
        faults = faults_of(problem)
        for kind in sorted({fault.fault for fault in faults}):
            fault = drawn.choice([item for item in faults if item.fault == kind])
            counts[kind, fault.in_place] += 1
            if counts[kind, fault.in_place] <= MOST_COMPARED:
                asked.append((problem, fault))
    with ThreadPoolExecutor(PROCESSES) as pool:
        real = list(pool.map(_is_fault, asked))
    known = [fault for (_, fault), kept in zip(asked, real, strict=True) if kept]
    chosen = _evenly([fault for fault in known if fault.in_place], WANTED_IN_PLACE)
    chosen += _evenly([fault for fault in known if not fault.in_place], WANTED - len(chosen))
    made = rows(chosen)
    _write(path, made)
    for name in {address.partition("/")[0] for address in addresses}:
        own = [row for row in made if str(row["problem"]).startswith(f"{name}/")]
        _write(path.with_name(f"{path.stem}-{name}.jsonl"), own)
    print(f"{len(chosen)} faults, {sum(item.in_place for item in chosen)} of them in place")
    return 0


def _write(path: Path, rows: Sequence[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def correct_golds(runs: Sequence[Path]) -> set[str]:
    """Return the problems whose gold is `correct` in one of the runs."""
    turns = [turn for run in runs for turn in turns_of(read_events(run)) if turn.judgements]
    return {turn.ask.problem for turn in turns if turn.judgements[0].verdict == "correct"}


def _is_fault(asked: tuple[Problem, Fault]) -> bool:
    return asked[1].is_certain or gold_outputs.differs(*asked)


def _evenly(faults: Sequence[Fault], wanted: int) -> list[Fault]:
    """Return so many faults, of each kind as many as of the others while it has some."""
    kinds: dict[str, list[Fault]] = {}
    for fault in faults:
        kinds.setdefault(fault.fault, []).append(fault)
    turns = [fault for place in range(wanted) for k in kinds.values() for fault in k[place:][:1]]
    return turns[:wanted]


def rows(faults: Sequence[Fault]) -> list[dict[str, object]]:
    """Return the rows of a file of candidates; those of one problem are its samples."""
    counts: dict[str, int] = {}
    made = []
    for fault in faults:
        sample = counts[fault.problem] = counts.get(fault.problem, -1) + 1
        made.append({**asdict(fault), "sample": sample})
    return made


def bars(file: Path, runs: Sequence[Path]) -> list[Bar]:
    """Return the bars over the verdicts of one or several runs."""
    faults = {f"{row['problem']}#{row['sample']}": row for row in map(json.loads, file.open())}
    judged_turns = [turn for run in runs for turn in turns_of(read_events(run)) if turn.judgements]
    turns = {turn.ask.id: turn for turn in judged_turns}
    missed = []
    for name in faults:
        verdict = turns[name].judgements[0].verdict if name in turns else "not judged"
        if verdict not in ("incorrect", "failed"):
            missed.append(f"{name} ({faults[name]['fault']}): {verdict}")
    print("\n".join(missed))
    in_place = sum(bool(row["in_place"]) for row in faults.values())
    found = len(faults) - len(missed)
    return [
        Bar(
            "planted golds: found",
            f"at least {FOUND} of {WANTED}",
            f"{found} of {len(faults)}",
            found >= FOUND,
            {"missed": missed},
        ),
        Bar(
            "planted golds: in place",
            f"at least {WANTED_IN_PLACE}",
            f"{in_place}",
            in_place >= WANTED_IN_PLACE,
        ),
    ]


def main() -> int:
    """Make the faults, or print the bars of a run over them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("make", "bars"))
    parser.add_argument("file", type=Path)
    help_runs = "run folders: for `make` of golds, for `bars` of the faults"
    parser.add_argument("runs", type=Path, nargs="+", help=help_runs)
    parser.add_argument("--problems", nargs="+", default=["tritonbench"])
    options = parser.parse_args()
    if options.step == "make":
        return make(options.file, options.problems, options.runs)
    return finish(bars(options.file, options.runs))


if __name__ == "__main__":
    sys.exit(main())
