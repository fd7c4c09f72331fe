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


GIVEN = {
    "seed": "the setting seeds gives each seed",
    "model.path": "the setting model gives the first model, and each stage the next one",
    "data.conversations": "give the setting conversations",
    "data.contexts": "give the setting contexts",
    "data.trees": "give the setting trees",
    "data.held_out_trees": "give the setting held_out_trees",
}
"""Settings of a stage that the recipe gives, and what to set instead."""


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
    trees: str = ""
    """File of action trees, for recipes that learn to choose. Empty: those of the family nano, at
    the scale `small`."""
    held_out_trees: str = ""
    """File of action trees that only measure the model. Empty: those of `held_out`, at the scale
    `small`, if it names problems of the family nano."""
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
    tried_configurations: int = Field(default=1, ge=1)
    """Configurations of this recipe that were tried before its figures are shown, with this one.
    Nothing checks the number. A comparison prints it: a recipe that was tuned more has an
    advantage."""
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
    for name, changes in config.changes.items():
        recipe.stage(name)
        for path in _flat(changes):
            if path in GIVEN:
                raise ConfigError(f"changes.{name}.{path}: {GIVEN[path]}")
    variants = list(recipe.chosen_variants(config.variants))
    if config.scale == "paper" and not config.model:
        raise ConfigError("the scale paper trains a given model: set model, or scale: small")
    _check_data(recipe, config)
    for stage in recipe.stages:
        stage_settings(recipe, stage, config)
    for variant in variants:
        stage_settings(recipe, recipe.stage(variant.stage), config, variant.changes)


def _check_data(recipe: Recipe, config: RecipeConfig) -> None:
    """Refuse a run whose stages lack data, or whose files are not there."""
    verbs = {stage.verb for stage in recipe.stages}
    needed = {"conversations": "sft" in verbs and not config.conversations}
    needed["contexts"] = any(s.needs_contexts for s in recipe.stages) and not config.contexts
    needed["trees"] = any(s.needs_trees for s in recipe.stages) and not config.trees
    for name in (name for name, lacks in needed.items() if lacks):
        if config.scale == "paper":
            raise ConfigError(f"the scale paper needs {name}: {recipe.data}")
        if not config.problems.startswith("nano/"):
            raise ConfigError(
                f"problems is {config.problems}: without {name}, the scale small needs problems of "
                "the family nano"
            )
        if not config.verdicts:
            raise ConfigError(
                f"without {name}, the scale small needs verdicts: synthetic, or a store"
            )
    given = config.contexts, config.trees, config.held_out_trees, config.model
    for name in (*config.conversations, *filter(None, given)):
        if not Path(name).exists():
            raise ConfigError(f"{name}: no such file or folder")


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return settings by dotted path; `{a: {b: 1}}` and `{a.b: 1}` are the same."""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        path = f"{prefix}{name}"
        if isinstance(value, dict):
            found |= _flat(value, f"{path}.")
        else:
            found[path] = value
    return found


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
        store = SYNTHETIC if config.is_synthetic else str(Path(config.verdicts).resolve())
        found |= {"world": BOOK, "verdicts": store}
    found |= changes or {}
    found |= _flat(config.changes.get(stage.name, {}))
    tree: dict[str, Any] = {}
    for path, value in found.items():
        *parents, last = path.split(".")
        place = tree
        for name in parents:
            place = place.setdefault(name, {})
            if not isinstance(place, dict):
                raise ConfigError(f"{path}: {name} is a value and no section")
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
