"""A recipe in words: its formulas, stages and values, each with its mark. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.rl.recipes.recipe import MARKS, Recipe, RecipeValue

LEGEND = (
    "[P]: value of the paper, or of a method that it names; [D]: our decision, for the reason given"
)


def explain_recipe(recipe: Recipe) -> str:
    """Return a page on a recipe: its idea, formulas, stages and values."""
    return "\n".join(_explained(recipe)) + "\n"


def _explained(recipe: Recipe) -> Iterator[str]:
    yield f"recipe {recipe.name}: {recipe.title}, {recipe.source}"
    yield ""
    yield recipe.summary
    yield ""
    yield "formulas"
    yield from (f"  {line}" for line in recipe.formulas)
    for stage in recipe.stages:
        yield ""
        yield f"stage {stage.name} (train {stage.verb}): {stage.summary}"
        for item in stage.values:
            yield f"  {value_line(item)}"
    for variant in recipe.variants:
        yield ""
        yield f"variant {variant.name} of the stage {variant.stage}: {_changes(variant.changes)}"
        yield f"  the paper: {variant.statement}"
        yield f"  predicted: {variant.figure} {variant.predicted:+.0%} against the recipe"
    yield ""
    yield f"data at the scale paper: {recipe.data}"
    yield LEGEND


def value_line(item: RecipeValue) -> str:
    """Return a value with its mark, its source, and its value at the scale `small`."""
    paper = "unchanged" if item.value is None else _shown(item.value)
    small = "" if item.small is None else f"; small: {_shown(item.small)}"
    return f"{MARKS[item.origin]} {item.path} = {paper}{small}   ({item.source})"


def recipe_rows(recipe: Recipe) -> Iterator[Sequence[str]]:
    """Yield the values of all stages as rows: stage, setting, paper, small, mark, source."""
    for stage in recipe.stages:
        for item in stage.values:
            paper = "" if item.value is None else _shown(item.value)
            small = "" if item.small is None else _shown(item.small)
            yield stage.name, item.path, paper, small, MARKS[item.origin], item.source


def _shown(value: Any) -> str:  # noqa: ANN401 - any setting
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else f"{value}"


def _changes(changes: dict[str, Any]) -> str:
    return ", ".join(f"{path} = {_shown(value)}" for path, value in changes.items())
