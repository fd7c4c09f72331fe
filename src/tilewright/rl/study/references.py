"""References without learning: as many programs of the cold-started model as an arm had judged.

An arm samples many programs, and the best of many samples is good without any learning. So the
page shows next to each arm the best of equally many programs of the reference arm. No torch.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tilewright.records.event_log import EVENTS, read_events
from tilewright.records.events import Turn, TurnFinished
from tilewright.rl.study.study_folder import TRAINED, StudyFolder, run_in
from tilewright.scoring.metrics import pass_at_k

PASS_AT = 16
"""Samples of the reference figure pass@16."""


def judged_turns(place: Path) -> list[Turn]:
    """Return the judged turns of the trained batches of an arm, in order of the log."""
    run = run_in(place)
    if run is None or not (run / EVENTS).exists():
        return []
    events = read_events(run, left_out=lambda _: None)
    turns = {item.turn.ask.id: item.turn for item in events if isinstance(item, TurnFinished)}
    return [
        turn
        for turn in turns.values()
        if turn.ask.id.startswith(TRAINED) and turn.judgements[0].verdict != "unjudged"
    ]


def bests_of(turns: Sequence[Turn]) -> dict[str, float]:
    """Return the best speed-up of each problem with a correct program."""
    best = dict[str, float]()
    for problem, speedup in _speedups(turns):
        best[problem] = max(best.get(problem, 0.0), speedup)
    return dict(sorted(best.items()))


def best_so_far(turns: Sequence[Turn]) -> list[float]:
    """Return after each batch the mean over problems of the best speed-up so far, at first 0."""
    problems = {turn.ask.problem for turn in turns}
    batches = sorted({turn.ask.id.partition("/")[0] for turn in turns})
    best, found = dict.fromkeys(problems, 0.0), list[float]()
    for batch in batches:
        of_batch = [turn for turn in turns if turn.ask.id.startswith(f"{batch}/")]
        for problem, speedup in _speedups(of_batch):
            best[problem] = max(best[problem], speedup)
        found.append(statistics.fmean(best.values()))
    return found


def pass_at(turns: Sequence[Turn]) -> float | None:
    """Return pass@16 of first turns, as a mean over problems; `None`: there are too few."""
    verdicts: dict[str, list[bool]] = {}
    for turn in turns:
        if turn.ask.turn == 0:
            right = turn.judgements[0].verdict == "correct"
            verdicts.setdefault(turn.ask.problem, []).append(right)
    known = [found for found in verdicts.values() if len(found) >= PASS_AT]
    shares = [pass_at_k(len(found), sum(found), PASS_AT) for found in known]
    return statistics.fmean(shares) if shares else None


def reference_log(folder: StudyFolder) -> dict[str, dict[str, Any]]:
    """Return for each arm and seed the best of as many programs of the reference arm.

    A seed that the reference does not have is compared with its first one.
    """
    name, found = folder.config.reference, dict[str, dict[str, Any]]()
    if not name:
        return found
    seeds = [seed for arm, seed in folder.config.runs() if arm == name]
    turns = {seed: judged_turns(folder.arm(name, seed)) for seed in seeds}
    for arm, seed in folder.config.runs():
        count = len(judged_turns(folder.arm(arm, seed)))
        equal = turns[seed if seed in turns else seeds[0]][:count]
        found.setdefault(arm, {})[str(seed)] = {
            "programs": len(equal),
            "best": bests_of(equal),
            f"pass@{PASS_AT}": pass_at(equal),
        }
    return found


def _speedups(turns: Sequence[Turn]) -> Iterator[tuple[str, float]]:
    for turn in turns:
        found = turn.judgements[0]
        if found.verdict == "correct" and found.speedup is not None:
            yield turn.ask.problem, found.speedup
