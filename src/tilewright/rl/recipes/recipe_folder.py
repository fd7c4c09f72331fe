"""The folder of a run of a recipe: its settings, and the run folders of its stages. No torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tilewright.errors import ConfigError, RecordError, writing
from tilewright.records.whole_files import write_whole
from tilewright.rl.recipes.recipe import Recipe, RecipeStage, Variant, find_recipe
from tilewright.rl.recipes.recipe_config import RecipeConfig
from tilewright.rl.study.study_config import first_difference
from tilewright.rl.study.study_folder import finished_model

RECIPE, LOGS = "recipe.yaml", "logs"
TRIED = "tried_configurations"
"""The setting that may change after the start."""


@dataclass(frozen=True)
class StageRun:
    """One training of a recipe: a stage with a seed, of the recipe itself or of a variant."""

    stage: RecipeStage
    seed: int
    variant: Variant | None = None

    @property
    def name(self) -> str:
        """The name of its folder."""
        name = self.variant.name if self.variant else self.stage.name
        return name if self.stage.verb == "sft" else f"{name}-{self.seed}"


@dataclass(frozen=True)
class RecipeFolder:
    """A folder, its recipe, and the settings that it was made with."""

    path: Path
    recipe: Recipe
    config: RecipeConfig

    def runs(self) -> Iterator[StageRun]:
        """Yield each training in the order in which they run: all seeds of a stage together."""
        for stage in self.recipe.stages:
            seeds = 1 if stage.verb == "sft" else self.config.seeds
            variants = [
                item
                for item in self.recipe.chosen_variants(self.config.variants)
                if item.stage == stage.name
            ]
            for variant in (None, *variants):
                for seed in range(seeds):
                    yield StageRun(stage, seed, variant)

    def place(self, run: StageRun) -> Path:
        """Return the folder in which the run folder of a training lies."""
        return self.path / run.name

    def is_done(self, run: StageRun) -> bool:
        """Tell whether a training has left its model."""
        return finished_model(self.place(run)) is not None

    def start_of(self, run: StageRun) -> str:
        """Return the model that a training begins with; empty: it makes a new one.

        It is that of the stage before, of the recipe itself.
        """
        place = self.recipe.stages.index(run.stage)
        if place == 0:
            return str(Path(self.config.model).resolve()) if self.config.model else ""
        before = self.recipe.stages[place - 1]
        found = finished_model(self.place(StageRun(before, run.seed)))
        return str(found or "")


def open_recipe(path: Path, recipe: Recipe, config: RecipeConfig) -> RecipeFolder:
    """Return the folder of a run of a recipe, which is made if it is not there.

    Raises:
        ConfigError: it belongs to another recipe or has other settings; the message names one.
    """
    recorded = path / RECIPE
    tree = {"recipe": recipe.name, **config.model_dump(mode="json")}
    if recorded.exists():
        found = read_recipe(path)
        # Known at the end alone, and no value of a training.
        same = found.config.model_copy(update={TRIED: config.tried_configurations})
        before = {"recipe": found.recipe.name, **same.model_dump(mode="json")}
        if name := first_difference(tree, before):
            raise ConfigError(
                f"{path} was begun with another value of {name}: give the settings in {recorded}, "
                "or another --out"
            )
    with writing(path):
        write_whole(recorded, yaml.safe_dump(tree, sort_keys=False))
    return RecipeFolder(path.resolve(), recipe, config)


def read_recipe(path: Path) -> RecipeFolder:
    """Return the folder of a run of a recipe that was begun.

    Raises:
        ConfigError: there is none.
        PluginError: its recipe is not installed.
        RecordError: its settings are damaged.
    """
    if not (path / RECIPE).is_file():
        raise ConfigError(f"{path} is no folder of a recipe: it has no {RECIPE}")
    tree = _read(path / RECIPE)
    name = str(tree.pop("recipe", ""))
    try:
        config = RecipeConfig.model_validate(tree)
    except ValueError as error:
        raise RecordError(f"{path / RECIPE}: {' '.join(str(error).split())[:200]}") from error
    return RecipeFolder(path.resolve(), find_recipe(name), config)


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, TypeError) as error:
        raise RecordError(f"{path}: {' '.join(str(error).split())[:200]}") from error
