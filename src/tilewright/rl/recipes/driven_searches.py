"""Searches that a trained model drives: the trajectories on held-out problems after its last step.

Each turn shows the programs before it and their feedback, so a trajectory of many turns is a search
by the model alone. Its score is the fastest correct program, as a share of the fastest one that the
store of verdicts has for the problem. No torch.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path

from tilewright.records.event_log import EVENTS, read_events
from tilewright.records.events import TurnFinished
from tilewright.rl.recipes.recipe import RecipeData
from tilewright.rl.recipes.recipe_folder import RecipeFolder, StageRun
from tilewright.rl.study.study_folder import run_in

SEARCHED = "search/best"
"""The mean score of the searches of a training."""
SCORE = "score"
"""Beginning of the names of batches on held-out problems."""


def search_score(folder: RecipeFolder, run: StageRun) -> float | None:
    """Return the mean score of the searches of a training; `None`: none can be scored."""
    place, config = run_in(folder.place(run)), folder.config
    if place is None or not (place / EVENTS).exists():
        return None
    # Without held-out problems there is no search, and a log takes seconds to read.
    if not config.held_out or not config.verdicts or run.stage.verb != "rl":
        return None
    best = best_by_search(place)
    if not best:
        return None
    group = config.held_out.partition("/")[2]
    known = fastest_known(RecipeData(folder.path, group, config.verdicts))
    shares = [
        speedup / known[problem] for (problem, _), speedup in best.items() if problem in known
    ]
    return statistics.fmean(shares) if shares else None


def best_by_search(place: Path) -> dict[tuple[str, str], float]:
    """Return the best speed-up of each trajectory of the last score, 0 without a correct program.

    The key is the problem and the trajectory.
    """
    found: dict[str, dict[tuple[str, str], float]] = defaultdict(lambda: defaultdict(float))
    for event in read_events(place, left_out=lambda _: None):
        if not isinstance(event, TurnFinished) or not event.turn.ask.id.startswith(SCORE):
            continue
        turn = event.turn
        batch, trajectory = turn.ask.id.partition("/")[0], turn.ask.id.rpartition(".")[0]
        verdict = turn.judgements[0] if turn.judgements else None
        correct = verdict is not None and verdict.verdict == "correct"
        speedup = (verdict.speedup or 0.0) if verdict is not None and correct else 0.0
        key = turn.ask.problem, trajectory
        found[batch][key] = max(found[batch][key], speedup)
    return dict(found[max(found)]) if found else {}


def fastest_known(data: RecipeData) -> dict[str, float]:
    """Return the largest speed-up of a correct program in a store, by problem."""
    found: dict[str, float] = defaultdict(float)
    for row in data.store().rows():
        if row.summary.verdict == "correct" and row.summary.speedup is not None:
            found[row.problem] = max(found[row.problem], row.summary.speedup)
    return dict(found)
