"""`tilewright train recipe`: published training systems, from a new model to a page."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import yaml

from tilewright.cli.options import JSON, WholeNumber, number, option, switch
from tilewright.cli.output import print_line
from tilewright.cli.progress import Progress
from tilewright.errors import ConfigError, PluginError, writing
from tilewright.registry import catalogue
from tilewright.rl.recipes import (
    recipe_comparison,
    recipe_folder,
    recipe_page,
    recipe_stages,
    recipe_text,
)
from tilewright.rl.recipes.recipe import Recipe, find_recipe
from tilewright.rl.recipes.recipe_config import (
    RecipeConfig,
    check_recipe,
    load_recipe_config,
    rehearsal,
    stage_tree,
)
from tilewright.rl.recipes.recipe_folder import RecipeFolder
from tilewright.rl.stage_runner import held, run_stages, seconds_of

LIST_HELP = "Print the recipes: their stages, the data that they need, and whether they need a GPU."
EXPLAIN_HELP = "Print the formulas and values of the recipe, each with its source."
SHOW_HELP = "Print the settings of each stage as YAML; train nothing."
COMPARE_HELP = (
    "Print a page that compares the trainings in these folders, one of each recipe; train nothing. "
    "Repeatable."
)
REHEARSE_HELP = (
    "Train a new small model on two problems with synthetic verdicts, on a CPU, in minutes."
)


@click.command("recipe")
@click.argument("name", required=False, metavar="NAME")
@click.argument("file", required=False, metavar="CONFIG")
@option("--out", "DIR", "Folder of the training, which is made or continued.", "target")
@click.option("--compare", "compared", multiple=True, metavar="DIR", help=COMPARE_HELP)
@number("--minutes", "Most minutes of this invocation.", 1, 10_000, 9)
@click.option("--seeds", type=WholeNumber(1, 100), help="Seeds of a rehearsal; default: 3.")
@option("--variants", "NAMES", "Variants of a rehearsal, with commas.", "variants")
@switch("--rehearse", REHEARSE_HELP)
@switch("--list", LIST_HELP, "listed")
@switch("--explain", EXPLAIN_HELP, "explained")
@switch("--show", SHOW_HELP, "shown")
@JSON
def recipe(name: str | None, file: str | None, **given: Any) -> int:  # noqa: ANN401 - options
    """Train a model as a published system does, and write a page about it.

    NAME is a recipe of --list. CONFIG is a YAML file; --rehearse needs none. Each invocation runs
    the next stages, stops in time, and prints what is left; repeat it until it prints `complete`.
    """
    if given["listed"]:
        _print_list(as_json=given["as_json"])
        return 0
    if given["compared"]:
        if name:
            raise ConfigError(f"--compare DIR alone names what is compared: leave out {name}")
        folders = [recipe_folder.read_recipe(Path(each)) for each in given["compared"]]
        return _compare(folders, as_json=given["as_json"])
    if not name:
        raise ConfigError("train recipe needs a NAME; `tilewright train recipe --list` shows them")
    found = find_recipe(name)
    if given["explained"]:
        click.echo(recipe_text.explain_recipe(found), nl=False)
        return 0
    config = _config(file, given)
    check_recipe(found, config)
    if given["shown"]:
        trees = {stage.name: stage_tree(stage, config) for stage in found.stages}
        click.echo(yaml.safe_dump(trees, sort_keys=False), nl=False)
        return 0
    if not given["target"]:
        raise ConfigError("train recipe needs --out DIR, the folder of the training")
    return _run(found, config, Path(given["target"]), given["minutes"], as_json=given["as_json"])


def _compare(folders: Sequence[RecipeFolder], *, as_json: bool) -> int:
    if as_json:
        found = recipe_comparison.compare(folders)
        click.echo(json.dumps({**asdict(found), "highest": found.highest}, indent=1))
    else:
        click.echo(recipe_comparison.comparison_page(folders), nl=False)
    return 0


def _config(file: str | None, given: dict[str, Any]) -> RecipeConfig:
    if given["rehearse"]:
        if file:
            raise ConfigError("--rehearse has settings of its own: leave CONFIG out")
        names = [name for name in (given["variants"] or "").split(",") if name]
        seeds = {} if given["seeds"] is None else {"seeds": given["seeds"]}
        return rehearsal(variants=tuple(names), **seeds)
    for name in ("seeds", "variants"):
        if given[name] is not None:
            raise ConfigError(f"--{name} is for --rehearse; a CONFIG has the setting {name}")
    if not file:
        raise ConfigError("train recipe needs a CONFIG, or --rehearse")
    return load_recipe_config(Path(file))


def _run(found: Recipe, config: RecipeConfig, target: Path, minutes: int, *, as_json: bool) -> int:
    until = time.monotonic() + 60 * minutes
    folder = recipe_folder.open_recipe(target, found, config)
    with held(folder.path), Progress(f"recipe {found.name}") as progress:
        stages = recipe_stages.stages_of(folder, lambda text: progress("stage", {"stage": text}))
        left = run_stages(
            folder.path, stages, until, lambda text: progress("stage", {"stage": text})
        )
    pages = recipe_page.recipe_pages(folder, seconds_of(folder.path))
    with writing(folder.path):
        for name, text in pages.items():
            (folder.path / name).write_text(text, encoding="utf-8")
    page = folder.path / recipe_page.PAGE
    if as_json:
        click.echo(json.dumps({"complete": not left, "left": left, "page": str(page)}, indent=1))
    if left:
        print_line(f"left: {', '.join(left)}; repeat the command")
    else:
        print_line(f"complete; page {page}")
    return 0


def _print_list(*, as_json: bool) -> None:
    rows, faults = list[dict[str, Any]](), list[str]()
    for name in catalogue("recipes"):
        try:
            rows.append(_row(find_recipe(name)))
        except PluginError as error:
            faults.append(f"{name}: {error}")
    for fault in faults:
        print_line(fault)
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    for row in rows:
        click.echo(f"{row['name']}: {row['title']}, {row['source']}")
        variants = ", ".join(row["variants"]) or "none"
        click.echo(f"  stages: {', '.join(row['stages'])}; variants: {variants}")
        click.echo(f"  data: {row['data']}")
        click.echo(f"  GPU: {row['gpu']}")


def _row(item: Recipe) -> dict[str, Any]:
    return {
        "name": item.name,
        "title": item.title,
        "source": item.source,
        "stages": [stage.name for stage in item.stages],
        "variants": [variant.name for variant in item.variants],
        "data": item.data,
        "gpu": "for real verdicts; --rehearse needs none",
    }
