"""The page of a run of a recipe: what each training began with and reached. No torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.records.event_log import EVENTS, read_events
from tilewright.records.events import Stepped
from tilewright.rl.recipes.choice_table import choice_lines
from tilewright.rl.recipes.driven_searches import SEARCHED, search_score
from tilewright.rl.recipes.recipe import Variant
from tilewright.rl.recipes.recipe_config import stage_settings
from tilewright.rl.recipes.recipe_folder import RecipeFolder, StageRun
from tilewright.rl.recipes.recipe_results import Gain, gain_of
from tilewright.rl.recipes.recipe_text import LEGEND, recipe_rows
from tilewright.rl.study.directions import Effect, effect, last_value
from tilewright.rl.study.step_chart import step_chart
from tilewright.rl.study.study_folder import figures_of, run_in

PAGE = "page.md"
FIGURES = {
    "correct": "correct",
    "rejected": "rejected",
    "coverage": "coverage",
    "fast@1.2": "fast@1.2",
    "not_triton": "passes the tests and is not Triton",
    SEARCHED: "best of its searches",
}
"""The figures of the table of trainings, and their headings."""
CHARTED = {
    "reward": "mean reward",
    "correct": "share of correct programs",
    "rejected": "share of rejected programs",
}
SYNTHETIC_NOTE = "synthetic verdicts"


@dataclass(frozen=True)
class Trained:
    """One training with its figures."""

    run: StageRun
    figures: list[dict[str, float | None]]
    gain: Gain | None


def trained_of(folder: RecipeFolder) -> list[Trained]:
    """Return the trainings from rewards that have begun, in order."""
    found = []
    for run in folder.runs():
        if run.stage.verb == "sft":
            continue
        place = folder.place(run)
        if figures := figures_of(place):
            changes = run.variant.changes if run.variant else {}
            settings = stage_settings(folder.recipe, run.stage, folder.config, changes)
            if (score := search_score(folder, run)) is not None:
                figures = [*figures[:-1], {**figures[-1], SEARCHED: score}]
            found.append(Trained(run, figures, gain_of(place, settings, folder.config.last_steps)))
    return found


def whole_gains(folder: RecipeFolder) -> dict[int, Gain]:
    """Return what all stages together gained by the reward of the last one, by seed.

    The first batch is that of the first stage that learns from rewards.
    """
    stages = [stage for stage in folder.recipe.stages if stage.verb != "sft"]
    found = {}
    for seed in range(folder.config.seeds):
        first, last = (StageRun(stage, seed) for stage in (stages[0], stages[-1]))
        settings = stage_settings(folder.recipe, last.stage, folder.config)
        start, steps = folder.place(first), folder.config.last_steps
        if (gain := gain_of(folder.place(last), settings, steps, start)) is not None:
            found[seed] = gain
    return found


def recipe_pages(folder: RecipeFolder, seconds: dict[str, float]) -> dict[str, str]:
    """Return the files of the page by name: the text, and charts."""
    trained = trained_of(folder)
    prefix = "synthetic-" if folder.config.is_synthetic else ""
    note = SYNTHETIC_NOTE if folder.config.is_synthetic else ""
    charts = {
        f"{prefix}{name}.svg": step_chart(title, _series(trained, name), note)
        for name, title in CHARTED.items()
    }
    return {PAGE: "\n".join(_lines(folder, trained, list(charts), seconds)), **charts}


def variant_effect(folder: RecipeFolder, variant: Variant, trained: list[Trained]) -> Effect:
    """Return the figure of a variant less that of the recipe, paired by seed."""
    own = [item for item in trained if item.run.stage.name == variant.stage]
    with_it = {str(i.run.seed): {"figures": i.figures} for i in own if i.run.variant is None}
    without = {str(i.run.seed): {"figures": i.figures} for i in own if i.run.variant == variant}
    return effect(without, with_it, variant.figure, folder.config.last_steps)


def _lines(
    folder: RecipeFolder, trained: list[Trained], charts: list[str], seconds: dict[str, float]
) -> Iterator[str]:
    recipe, config = folder.recipe, folder.config
    yield f"# Recipe {recipe.name}"
    yield ""
    yield f"{recipe.title}, {recipe.source}. {recipe.summary}"
    yield ""
    if config.is_synthetic:
        yield "All verdicts are **synthetic**: a formula computed them, and no program ran."
        yield "The page shows that the tools work, and nothing about kernels."
        yield ""
    yield f"Problems `{config.problems}`, scale `{config.scale}`."
    yield ""
    yield from _supervised(folder)
    yield from _trainings(folder, trained)
    yield from choice_lines(folder)
    yield from _whole(folder)
    yield from _variants(folder, trained)
    yield "## Charts"
    yield ""
    yield from (f"![{name.removesuffix('.svg')}]({name})" for name in charts)
    yield ""
    yield "## Seconds"
    yield ""
    yield from ("| training | seconds |", "| --- | --- |")
    yield from (f"| {name} | {value:.0f} |" for name, value in seconds.items())
    yield ""
    yield "## Values"
    yield ""
    yield f"{LEGEND}."
    yield ""
    yield from ("| stage | setting | paper | small | | source |", "| --- " * 6 + "|")
    yield from (f"| {' | '.join(row)} |" for row in recipe_rows(recipe))


def _supervised(folder: RecipeFolder) -> Iterator[str]:
    for run in folder.runs():
        place = run_in(folder.place(run))
        if run.stage.verb != "sft" or place is None or not (place / EVENTS).exists():
            continue
        events = read_events(place, left_out=lambda _: None)
        losses = [
            value
            for event in events
            if isinstance(event, Stepped) and (value := event.figures.get("loss")) is not None
        ]
        if losses:
            yield f"Supervised loss: {losses[0]:.3f} at first, {losses[-1]:.3f} at the end."
            yield ""


def _trainings(folder: RecipeFolder, trained: list[Trained]) -> Iterator[str]:
    mark = ", synthetic" if folder.config.is_synthetic else ""
    yield "## Trainings"
    yield ""
    yield "The reward at the start is that of the first batch, which is sampled before any update."
    yield f"The other columns are means over the last {folder.config.last_steps} steps."
    yield "`fast@1.2` is the share of programs that are correct and more than 1.2 times as fast."
    if folder.config.held_out:
        yield "A search is a trajectory on a held-out problem after the last step."
        yield "Its best program counts as a share of the fastest one that the store has."
    yield ""
    heads = ["training", "programs", "reward at the start", "reward", "difference, 95 %"]
    shown = [name for name in FIGURES if name != SEARCHED or folder.config.held_out]
    heads += [FIGURES[name] for name in shown]
    yield f"| {' | '.join(heads)} |"
    yield "| --- " * len(heads) + "|"
    for item in trained:
        gain = item.gain
        cells = [f"{item.run.name}{mark}"]
        if gain is None:
            cells += [""] * 4
        else:
            cells += [str(gain.programs), f"{gain.start:.3f}", f"{gain.end:.3f}"]
            cells.append(_difference(gain))
        values = [last_value(item.figures, name, folder.config.last_steps) for name in shown]
        cells += ["not measured" if value is None else f"{value:.3f}" for value in values]
        yield f"| {' | '.join(cells)} |"
    yield ""


def _difference(gain: Gain) -> str:
    ends = "" if gain.low is None else f" [{gain.low:+.3f}, {gain.high:+.3f}]"
    return f"{gain.end - gain.start:+.3f}{ends}"


def _whole(folder: RecipeFolder) -> Iterator[str]:
    """Yield the gain over all stages, if several learn from rewards."""
    if sum(stage.verb != "sft" for stage in folder.recipe.stages) < 2:
        return
    if not (gains := whole_gains(folder)):
        return
    yield "## All stages together"
    yield ""
    yield "Both columns of rewards are paid as in the last stage."
    yield "The start is the first batch of the first stage that learns from rewards."
    yield ""
    yield from ("| seed | start | end | difference, 95 % |", "| --- | --- | --- | --- |")
    for seed, gain in gains.items():
        yield f"| {seed} | {gain.start:.3f} | {gain.end:.3f} | {_difference(gain)} |"
    yield ""


def _variants(folder: RecipeFolder, trained: list[Trained]) -> Iterator[str]:
    chosen = list(folder.recipe.chosen_variants(folder.config.variants))
    if not chosen:
        return
    yield "## Variants"
    yield ""
    heads = (
        "variant",
        "statement of the paper",
        "figure",
        "predicted",
        "seen",
        "larger than the noise",
    )
    yield f"| {' | '.join(heads)} |"
    yield "| --- " * len(heads) + "|"
    for variant in chosen:
        found = variant_effect(folder, variant, trained)
        seen = "not there yet" if found.seen is None else f"{found.seen:+.3f}"
        if found.low is not None:
            seen += f" [{found.low:+.3f}, {found.high:+.3f}]"
        resolved = "yes" if found.is_resolved else "no: not resolved"
        cells = variant.name, variant.statement, variant.figure, f"{variant.predicted:+.2f}"
        yield f"| {' | '.join((*cells, seen, resolved))} |"
    yield ""


def _series(trained: list[Trained], name: str) -> dict[str, list[list[float | None]]]:
    found: dict[str, list[list[float | None]]] = {}
    for item in trained:
        label = item.run.variant.name if item.run.variant else item.run.stage.name
        found.setdefault(label, []).append([step.get(name) for step in item.figures])
    return found
