"""The settings of a run of a recipe, and those of each of its stages. No torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from tilewright.config import Section
from tilewright.errors import ConfigError
from tilewright.records.field_faults import first_fault
from tilewright.rl.recipes.recipe import Recipe, RecipeStage, Scale
from tilewright.rl.training_config import TrainConfig
from tilewright.rl.verdict_store import SYNTHETIC
from tilewright.rl.worlds import BOOK

REHEARSED = "nano/rehearsal"
REHEARSAL_SEEDS = 3
"""Seeds of a rehearsal: each must improve on its own start."""


class RecipeConfig(Section):
    """Every setting of `tilewright train recipe`."""

    scale: Scale = "paper"
    """`paper` trains `model` with the values of the paper. `small` trains a new model of a million
    weights on the family nano."""
    problems: str
    """Address of the training problems."""
    held_out: str = ""
    """Address of the problems that only measure the model."""
    verdicts: str = ""
    """Source of verdicts: `synthetic`, a store of verdicts, or empty for the evaluator."""
    conversations: tuple[str, ...] = ()
    """Files for supervised learning. Empty: programs of the family nano, at the scale `small`."""
    contexts: str = ""
    """File of stored contexts, for recipes that learn from rewards on them (`tilewright data export
    --format contexts`). Empty: those of a search over the family nano, at the scale `small`."""
    model: str = ""
    """Folder of the model that the first stage trains. Empty: a new one, at the scale `small`."""
    device: str = "cpu"
    """Device of the model that is trained: `cpu` or `cuda`."""
    seeds: int = Field(default=1, ge=1)
    """Number of seeds of the stages after supervised learning, from 0."""
    variants: tuple[str, ...] = ()
    """Variants that are trained as well, each with all seeds."""
    changes: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Settings of `tilewright train` that differ from the recipe, by stage and dotted path."""
    last_steps: int = Field(default=3, ge=1)
    """Steps at the end of a stage over which its figures are averaged."""

    @property
    def is_synthetic(self) -> bool:
        """Whether a formula computes the verdicts."""
        return self.verdicts == SYNTHETIC


def rehearsal(**given: Any) -> RecipeConfig:  # noqa: ANN401 - settings
    """Return the settings of a rehearsal: two problems, synthetic verdicts, three seeds."""
    base = {"scale": "small", "problems": REHEARSED, "verdicts": SYNTHETIC}
    return RecipeConfig.model_validate({**base, "seeds": REHEARSAL_SEEDS, **given})


def load_recipe_config(path: Path) -> RecipeConfig:
    """Return the settings in a YAML file.

    Raises:
        ConfigError: there is no such file, or a setting is wrong; the message names it.
    """
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
        return RecipeConfig.model_validate(tree)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: no such file, or no text") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: no YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_fault(error)}") from error


def check_recipe(recipe: Recipe, config: RecipeConfig) -> None:
    """Refuse settings with which a stage cannot run, before anything runs.

    Raises:
        ConfigError: a setting is wrong; the message names it.
    """
    for name in config.changes:
        recipe.stage(name)
    variants = list(recipe.chosen_variants(config.variants))
    if config.scale == "paper" and not config.model:
        raise ConfigError("the scale paper trains a given model: set model, or scale: small")
    if config.scale == "paper" and not config.conversations:
        raise ConfigError(f"the scale paper needs conversations: {recipe.data}")
    family = config.problems.startswith("nano/")
    if not config.conversations and not family:
        raise ConfigError(
            f"problems is {config.problems}: without conversations, supervised learning needs "
            "problems of the family nano"
        )
    for stage in recipe.stages:
        stage_settings(recipe, stage, config)
    for variant in variants:
        stage_settings(recipe, recipe.stage(variant.stage), config, variant.changes)


def stage_tree(
    stage: RecipeStage, config: RecipeConfig, changes: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the settings of a stage as a tree, for a YAML file of `tilewright train`."""
    found: dict[str, Any] = {
        **stage.changes(config.scale),
        "machine.device": config.device,
        "data.problems": config.problems,
        "data.held_out": config.held_out,
    }
    if config.verdicts:
        found |= {"world": BOOK, "verdicts": config.verdicts}
    found |= changes or {}
    found |= config.changes.get(stage.name, {})
    tree: dict[str, Any] = {}
    for path, value in found.items():
        *parents, last = path.split(".")
        place = tree
        for name in parents:
            place = place.setdefault(name, {})
        place[last] = value
    return tree


def stage_settings(
    recipe: Recipe,
    stage: RecipeStage,
    config: RecipeConfig,
    changes: dict[str, Any] | None = None,
) -> TrainConfig:
    """Return the settings of a stage, checked.

    Raises:
        ConfigError: a setting is wrong; the message names the stage and the setting.
    """
    try:
        found = TrainConfig.model_validate(stage_tree(stage, config, changes))
        found.estimator()
    except ValidationError as error:
        raise ConfigError(f"{recipe.name}, stage {stage.name}: {first_fault(error)}") from error
    except ConfigError as error:
        raise ConfigError(f"{recipe.name}, stage {stage.name}: {error}") from error
    return found
