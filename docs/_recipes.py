"""The page on recipes: each value of each published system, with its origin."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.registry import catalogue
from tilewright.rl.recipes.recipe import find_recipe
from tilewright.rl.recipes.recipe_text import LEGEND, recipe_rows

Table = Callable[[tuple[str, ...], Sequence[tuple[str, ...]]], str]
INTRODUCTION = f"""# Recipes

A recipe is a published training system as stages of `tilewright train`.
`tilewright train recipe NAME` runs it, and the
[guide](../guides/choose-a-recipe.md) says what each one needs.

{LEGEND}.
`small` is the value at the scale `small`, where it differs from that of the paper.

"""
HEAD = "stage", "setting", "paper", "small", "origin", "source"


def page(table: Table) -> str:
    """Return the page."""
    text = INTRODUCTION
    for name in catalogue("recipes", packages=()):
        recipe = find_recipe(name)
        text += f"## {recipe.title}\n\n`{name}`: {recipe.source}. {recipe.summary}\n\n"
        text += "```text\n" + "".join(f"{line}\n" for line in recipe.formulas) + "```\n\n"
        text += table(HEAD, [tuple(row) for row in recipe_rows(recipe)])
        for item in recipe.variants:
            changes = ", ".join(f"`{path}={value}`" for path, value in item.changes.items())
            text += f"Variant `{item.name}` of the stage `{item.stage}`: {changes}.\n"
            text += f"The paper: {item.statement}\n\n"
    return text.rstrip() + "\n"
