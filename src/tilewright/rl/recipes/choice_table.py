"""The part of a recipe's page on policies that choose: values on trees, and the coder's calls.

No torch.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.records.event_log import EVENTS, read_steps
from tilewright.rl.choices.choice_log import SCORE, SHARED
from tilewright.rl.choices.hierarchy import call_counts
from tilewright.rl.recipes.recipe_config import stage_settings
from tilewright.rl.recipes.recipe_folder import RecipeFolder, StageRun
from tilewright.rl.study.study_folder import run_in

WHERE = {"train": "training problems", "held_out": "held-out problems"}
HEADS = {
    "greedy": "most likely action",
    "sampled": "sampled",
    "uniform": "uniform",
    "first_action": "first action",
}
EDITS = (1, 2, 4, 8)
RUNS = 4000
"""Played runs of each row of the table of calls."""
Figures = dict[str, float | None]


def choice_lines(folder: RecipeFolder) -> Iterator[str]:
    """Yield the lines on a recipe's stages that learn to choose; none if there is no such stage."""
    runs = [run for run in folder.runs() if run.stage.verb == "choices"]
    scored = [(run, found) for run in runs if (found := scores_of(folder, run))]
    if not scored:
        return
    yield "## Values on action trees"
    yield ""
    yield "A value is the expected discounted return from the root, computed exactly."
    yield "Each cell is its share of the best value by value iteration, as a mean over trees."
    yield "A search takes the most likely action unless `decision` is `sample`."
    yield ""
    heads = ["training", "problems", "steps", *HEADS.values()]
    yield f"| {' | '.join(heads)} |"
    yield "| --- " * len(heads) + "|"
    mark = ", synthetic" if folder.config.is_synthetic else ""
    for run, found in scored:
        for step in (min(found), max(found)):
            for where, title in WHERE.items():
                cells = [_share(found[step], where, policy) for policy in SHARED]
                if any(cells):
                    yield f"| {run.name}{mark} | {title} | {step} | {' | '.join(cells)} |"
    yield ""
    yield from _calls(folder, runs[0])


def scores_of(folder: RecipeFolder, run: StageRun) -> dict[int, Figures]:
    """Return the values of a training on its trees, by the number of steps before them."""
    place = run_in(folder.place(run))
    if place is None or not (place / EVENTS).exists():
        return {}
    steps = read_steps(place)
    return {event.step: event.figures for event in steps if event.batch.startswith(SCORE)}


def _share(figures: Figures, where: str, policy: str) -> str:
    value = figures.get(f"{where}/{policy}_share")
    return "" if value is None else f"{value:.3f}"


def _calls(folder: RecipeFolder, run: StageRun) -> Iterator[str]:
    """Yield the table of the coder's calls at its rate of errors."""
    settings = stage_settings(folder.recipe, run.stage, folder.config)
    success = settings.estimator().choices.coder_success
    if success == 1.0:
        return
    yield "## Calls of the coder"
    yield ""
    yield f"The scripted coder makes an exact edit with probability {success:g}."
    yield "Single edits are repeated until each is exact; several edits at once are exact together."
    yield f"The means are over {RUNS} played runs, with a standard error."
    yield ""
    heads = ("edits", "single, expected", "single, played", "at once, expected", "at once, played")
    yield f"| {' | '.join(heads)} |"
    yield "| --- " * len(heads) + "|"
    for edits in EDITS:
        cells = [str(edits)]
        for at_once in (False, True):
            found = call_counts(edits, success, at_once=at_once, runs=RUNS, seed=0)
            cells += [f"{found.expected:.3f}", f"{found.mean:.3f} ({found.error:.3f})"]
        yield f"| {' | '.join(cells)} |"
    yield ""
