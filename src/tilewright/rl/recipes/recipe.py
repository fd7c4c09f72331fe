"""Recipes: the stages of a published training system, with the origin of each value.

Plug-ins of the kind `recipes` are objects of the class `Recipe`. No torch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from tilewright.errors import ConfigError
from tilewright.registry import load
from tilewright.rl.data.family_rows import Extent
from tilewright.rl.synthetic_verdicts import synthetic_store
from tilewright.rl.verdict_store import SYNTHETIC, VerdictStore

STORE = "synthetic.jsonl.gz"
Origin = Literal["paper", "ours"]
MARKS: dict[Origin, str] = {"paper": "[P]", "ours": "[D]"}
"""Marks of values: those of the paper, and our decisions where it is silent."""
Scale = Literal["paper", "small"]
"""`paper` trains a given model with the values of the paper. `small` trains a new model of a
million weights."""
Verb = Literal["sft", "rl", "choices"]
"""The command of `tilewright train` that a stage runs."""


@dataclass(frozen=True)
class RecipeValue:
    """A setting of `tilewright train` in one stage, and where its value comes from."""

    path: str
    """Dotted path of the setting."""
    value: Any
    """Value at the scale `paper`; `None`: the setting is left as it is."""
    origin: Origin
    source: str
    """Section of the paper, or the reason of our decision."""
    small: Any = None
    """Value at the scale `small`; `None`: the same."""

    def at(self, scale: Scale) -> Any:  # noqa: ANN401 - any setting
        """Return the value at a scale."""
        return self.small if scale == "small" and self.small is not None else self.value


Prepare = Callable[["RecipeData"], dict[str, Any]]
"""Writes the data of a stage, unless they are there; returns the settings that name them."""


@dataclass(frozen=True)
class RecipeData:
    """The folder of a run of a recipe, and where its data come from."""

    path: Path
    group: str
    """Group of the family nano."""
    verdicts: str
    """`synthetic`, or a store of verdicts."""
    held_out: str = ""
    """Group of the family nano that only measures the model; empty: none."""

    def store(self, group: str | None = None) -> VerdictStore:
        """Return the verdicts of a group, or of `group`; raise `ConfigError` or `RecordError`."""
        if self.verdicts == SYNTHETIC:
            return synthetic_store(self.path / STORE, self.group if group is None else group)
        return VerdictStore.read(Path(self.verdicts))

    @property
    def extent(self) -> Extent:
        """The programs that data may contain: those that the store has."""
        return "space" if self.verdicts == SYNTHETIC else "census"


@dataclass(frozen=True)
class RecipeStage:
    """One training of a recipe. Its model is that of the stage before it."""

    name: str
    verb: Verb
    summary: str
    """The work of the stage, in one sentence."""
    values: tuple[RecipeValue, ...]
    prepare: Prepare | None = None
    """Writes the data of the stage at the scale `small`."""
    needs_contexts: bool = False
    """Whether its prompts show stored contexts."""

    @property
    def needs_trees(self) -> bool:
        """Whether it learns to choose on action trees."""
        return self.verb == "choices"

    def changes(self, scale: Scale) -> dict[str, Any]:
        """Return the settings of the stage by dotted path, without those that it leaves alone."""
        found = {item.path: item.at(scale) for item in self.values}
        return {path: value for path, value in found.items() if value is not None}


@dataclass(frozen=True)
class Variant:
    """A stage with other settings, which shows the effect of one idea of the recipe."""

    name: str
    stage: str
    changes: dict[str, Any]
    statement: str
    """The statement of the paper about this idea, with its figures."""
    figure: str
    """The figure of the event log that differs, as a share."""
    predicted: float
    """Predicted figure of the variant less that of the recipe, over the last steps."""
    prepare: Prepare | None = None
    """Writes the data of the variant at the scale `small`; `None`: it has those of the stage."""


@dataclass(frozen=True)
class Recipe:
    """A published training system. `find_recipe` finds it by name."""

    name: str
    title: str
    source: str
    """Paper, with its arXiv number."""
    summary: str
    """Its idea, in one or two sentences."""
    formulas: tuple[str, ...]
    """Formulas in plain text, each with its place in the paper."""
    stages: tuple[RecipeStage, ...]
    data: str
    """The data that a run at the scale `paper` needs."""
    variants: tuple[Variant, ...] = ()

    def stage(self, name: str) -> RecipeStage:
        """Return a stage by name, or raise `ConfigError` with the names that exist."""
        for item in self.stages:
            if item.name == name:
                return item
        known = ", ".join(item.name for item in self.stages)
        raise ConfigError(f"the recipe {self.name} has no stage {name!r}; stages: {known}")

    def chosen_variants(self, names: Collection[str]) -> Iterator[Variant]:
        """Yield the variants of some names, or raise `ConfigError`."""
        known = {item.name: item for item in self.variants}
        for name in names:
            if name in {item.name for item in self.stages}:
                raise ConfigError(f"{self.name}: a variant and a stage are both called {name!r}")
            if name not in known:
                listed = ", ".join(known) or "none"
                raise ConfigError(f"{self.name} has no variant {name!r}; variants: {listed}")
            yield known[name]


def find_recipe(name: str) -> Recipe:
    """Return the recipe of a name.

    Raises:
        PluginError: it is unknown, or cannot be imported.
    """
    return cast("Recipe", load("recipes", name))
