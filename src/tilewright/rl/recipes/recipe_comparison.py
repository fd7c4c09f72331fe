"""A page that compares runs of recipes at equal numbers of judged programs. No torch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.errors import ConfigError
from tilewright.records.event_log import EVENTS, read_steps
from tilewright.rl.recipes.recipe_config import stage_settings
from tilewright.rl.recipes.recipe_folder import RecipeFolder
from tilewright.rl.recipes.recipe_page import trained_of, variant_effect
from tilewright.rl.recipes.recipe_results import observations
from tilewright.rl.stage_runner import seconds_of
from tilewright.rl.study.directions import STUDENT_95, last_value
from tilewright.rl.study.study_folder import run_in

SAME = ("scale", "problems", "last_steps")
"""Settings in which runs must agree to be compared; the page names those that differ."""
COMPARED = ("fast@1.2", "correct", "coverage", "rejected")
"""The figures of the comparison, which all are shares."""


@dataclass(frozen=True)
class JudgedStep:
    """A step of a training: its figures, and the programs that it had judged."""

    figures: dict[str, float | None]
    programs: int


@dataclass(frozen=True)
class SeedSteps:
    """The steps of one seed of a recipe, over all stages that learn from rewards."""

    steps: tuple[JudgedStep, ...]

    @property
    def programs(self) -> int:
        """The programs of all steps."""
        return sum(step.programs for step in self.steps)

    def until(self, programs: int) -> tuple[JudgedStep, ...]:
        """Return the first steps, as many as had at most so many programs judged in all."""
        found, spent = list[JudgedStep](), 0
        for step in self.steps:
            spent += step.programs
            if spent > programs:
                break
            found.append(step)
        return tuple(found)


@dataclass(frozen=True)
class MeanOfSeeds:
    """The mean of a share over seeds, with its 95 % interval by Student's distribution."""

    mean: float
    low: float | None
    high: float | None
    """`None`: there are fewer than two seeds, or all have the same value."""

    def __str__(self) -> str:
        """Return it as a cell of a table."""
        if self.low is None or self.high is None:
            return f"{self.mean:.3f}"
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class RecipeComparison:
    """The figures of recipes after equal numbers of judged programs."""

    programs: int
    """Programs of a seed: the fewest of any seed."""
    means: dict[str, dict[str, MeanOfSeeds | None]]
    """For each figure, that of each recipe; `None`: it was not measured."""

    @property
    def highest(self) -> dict[str, str | None]:
        """The recipe whose interval lies above all others, for each figure; `None`: none does."""
        return {figure: highest(found) for figure, found in self.means.items()}


def compare(folders: Sequence[RecipeFolder]) -> RecipeComparison:
    """Compare runs of recipes.

    Raises:
        ConfigError: fewer than two runs are given, a recipe has two, or one has no judged step.
    """
    names = [folder.recipe.name for folder in folders]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ConfigError("a comparison needs runs of at least two recipes, one of each")
    seeds = {folder.recipe.name: seed_steps(folder) for folder in folders}
    for folder in folders:
        if not any(item.steps for item in seeds[folder.recipe.name]):
            raise ConfigError(f"{folder.path}: no step of {folder.recipe.name} was judged yet")
    programs = equal_programs(seeds)
    means = {
        figure: {
            folder.recipe.name: mean_of_seeds(
                seeds[folder.recipe.name], figure, programs, folder.config.last_steps
            )
            for folder in folders
        }
        for figure in COMPARED
    }
    return RecipeComparison(programs, means)


def comparison_page(folders: Sequence[RecipeFolder]) -> str:
    """Return the comparison as a page in Markdown.

    Raises:
        ConfigError: see `compare`.
    """
    return "\n".join([*_lines(folders, compare(folders))]) + "\n"


def seed_steps(folder: RecipeFolder) -> list[SeedSteps]:
    """Return the judged steps of each seed, without those of variants."""
    found: dict[int, list[JudgedStep]] = {seed: [] for seed in range(folder.config.seeds)}
    for run in folder.runs():
        if run.stage.verb == "sft" or run.variant is not None:
            continue
        place = folder.place(run)
        path = run_in(place)
        if path is None or not (path / EVENTS).exists():
            continue
        settings = stage_settings(folder.recipe, run.stage, folder.config)
        judged = observations(place, settings)
        steps = {item.step: item for item in read_steps(path) if item.batch in judged}
        for step in sorted(steps):
            programs = sum(item.programs for item in judged[steps[step].batch])
            found[run.seed].append(JudgedStep(steps[step].figures, programs))
    return [SeedSteps(tuple(steps)) for steps in found.values()]


def equal_programs(seeds: dict[str, list[SeedSteps]]) -> int:
    """Return the number of programs that each seed of each recipe had judged."""
    return min(item.programs for found in seeds.values() for item in found if item.steps)


def mean_of_seeds(
    found: Sequence[SeedSteps], figure: str, programs: int, last_steps: int
) -> MeanOfSeeds | None:
    """Return the mean of a figure over the last steps within so many programs.

    `None`: no seed has the figure there.
    """
    ends = [[step.figures for step in item.until(programs)] for item in found]
    values = [value for end in ends if (value := last_value(end, figure, last_steps)) is not None]
    if not values:
        return None
    mean = statistics.fmean(values)
    if len(set(values)) < 2:
        return MeanOfSeeds(mean, None, None)
    quantile = STUDENT_95[min(len(values) - 1, len(STUDENT_95)) - 1]
    half = quantile * statistics.stdev(values) / math.sqrt(len(values))
    return MeanOfSeeds(mean, max(mean - half, 0.0), min(mean + half, 1.0))


def highest(means: dict[str, MeanOfSeeds | None]) -> str | None:
    """Return whose interval lies above all others; `None`: intervals overlap, or one is missing.

    Seeds with equal shares show no spread, so that their interval is missing.
    """
    bounds = dict[str, tuple[float, float]]()
    for name, item in means.items():
        if item is None or item.low is None or item.high is None:
            return None
        bounds[name] = item.low, item.high
    best = max(bounds, key=lambda name: bounds[name])
    others = [high for name, (_, high) in bounds.items() if name != best]
    return best if others and max(others) < bounds[best][0] else None


def _lines(folders: Sequence[RecipeFolder], compared: RecipeComparison) -> Iterator[str]:
    yield "# Recipes compared"
    yield ""
    for caveat in _caveats(folders):
        yield caveat
        yield ""
    yield from _runs(folders)
    yield f"## After {compared.programs} judged programs"
    yield ""
    yield "Each seed counts until it had so many programs judged, the fewest of any seed here."
    yield "The figures are means over its last steps there, then over seeds, with 95 % intervals."
    yield ""
    yield f"| recipe | {' | '.join(COMPARED)} |"
    yield "| --- " * (1 + len(COMPARED)) + "|"
    for folder in folders:
        ends = [found[folder.recipe.name] for found in compared.means.values()]
        cells = ("not measured" if end is None else str(end) for end in ends)
        yield f"| {folder.recipe.name} | {' | '.join(cells)} |"
    best = (name or "not resolved" for name in compared.highest.values())
    yield f"| highest | {' | '.join(best)} |"
    yield ""
    yield from _directions(folders)


def _caveats(folders: Sequence[RecipeFolder]) -> Iterator[str]:
    if any(folder.config.is_synthetic for folder in folders):
        yield "Some verdicts are **synthetic**: a formula computed them, and no program ran."
    models = {folder.config.model for folder in folders}
    if len(models) > 1 or models == {""}:
        yield "The recipes did not begin with the same weights, so the start differs too."
    for setting in SAME:
        values = sorted({str(getattr(folder.config, setting)) for folder in folders})
        if len(values) > 1:
            shown = ", ".join(f"`{value}`" for value in values)
            yield f"**Not comparable**: `{setting}` differs between the runs ({shown})."


def _runs(folders: Sequence[RecipeFolder]) -> Iterator[str]:
    heads = ["recipe", "begins with", "verdicts", "tried configurations", "seeds"]
    heads += ["programs of a seed", "seconds"]
    yield f"| {' | '.join(heads)} |"
    yield "| --- " * len(heads) + "|"
    for folder in folders:
        found = [item.programs for item in seed_steps(folder)]
        cells = (
            folder.recipe.name,
            folder.config.model or "a new model",
            "synthetic" if folder.config.is_synthetic else "judged",
            str(folder.config.tried_configurations),
            str(len(found)),
            f"{min(found)} to {max(found)}",
            f"{math.fsum(seconds_of(folder.path).values()):.0f}",
        )
        yield f"| {' | '.join(cells)} |"
    yield ""


def _directions(folders: Sequence[RecipeFolder]) -> Iterator[str]:
    chosen = [
        (folder, variant)
        for folder in folders
        for variant in folder.recipe.chosen_variants(folder.config.variants)
    ]
    if not chosen:
        return
    yield "## Directions of the papers"
    yield ""
    heads = ("recipe", "statement of the paper", "figure", "predicted", "seen", "resolved")
    yield f"| {' | '.join(heads)} |"
    yield "| --- " * len(heads) + "|"
    for folder, variant in chosen:
        found = variant_effect(folder, variant, trained_of(folder))
        seen = "not there yet" if found.seen is None else f"{found.seen:+.3f}"
        cells = folder.recipe.name, variant.statement, variant.figure, f"{variant.predicted:+.2f}"
        yield f"| {' | '.join((*cells, seen, 'yes' if found.is_resolved else 'no'))} |"
    yield ""
