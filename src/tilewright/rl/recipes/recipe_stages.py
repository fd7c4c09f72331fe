"""The stages of a recipe as commands: each is a training with a run folder of its own. No torch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from tilewright.errors import ConfigError, InfrastructureError, writing
from tilewright.rl.data.cold_start import cold_start
from tilewright.rl.data.family_rows import Extent
from tilewright.rl.recipes import recipe_folder
from tilewright.rl.recipes.recipe import RecipeStage
from tilewright.rl.recipes.recipe_config import stage_tree
from tilewright.rl.recipes.recipe_folder import RecipeFolder, StageRun
from tilewright.rl.stage_runner import Shown, Stage, run_command, settings_text
from tilewright.rl.study.study_folder import run_in
from tilewright.rl.synthetic_verdicts import synthetic_store
from tilewright.rl.verdict_store import VerdictStore


def stages_of(folder: RecipeFolder, shown: Shown) -> Iterator[Stage]:
    """Yield the trainings of a recipe as stages."""
    for run in folder.runs():
        yield Stage(run.name, _done(folder, run), _trained(folder, run, shown))


def _done(folder: RecipeFolder, run: StageRun) -> Callable[[], bool]:
    return lambda: folder.is_done(run)


def _trained(folder: RecipeFolder, run: StageRun, shown: Shown) -> Callable[[float], None]:
    def train(until: float) -> None:
        place = folder.place(run)
        log = folder.path / recipe_folder.LOGS / f"{run.name}.txt"
        with writing(folder.path):
            log.parent.mkdir(exist_ok=True)
        begun = run_in(place)
        words = ["--resume", str(begun)] if begun else _first_words(folder, run)
        status, last = run_command(["train", run.stage.verb, *words], log, until, shown)
        if status == ConfigError.exit_code:
            raise ConfigError(f"{run.name}: {last}")
        if status:
            raise InfrastructureError(f"{run.name}: {last}")

    return train


def _first_words(folder: RecipeFolder, run: StageRun) -> list[str]:
    """Write the settings of a training; return the words that begin it."""
    changes = run.variant.changes if run.variant else {}
    tree = stage_tree(run.stage, folder.config, changes)
    path = folder.path / f"{run.name}.yaml"
    given: dict[str, Any] = {"seed": run.seed}
    if start := folder.start_of(run):
        given["model.path"] = start
    if run.stage.verb == "sft":
        given["data.conversations"] = conversations(folder, run.stage)
    with writing(folder.path):
        path.write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")
    sets = [word for text in settings_text(given) for word in ("--set", text)]
    return [str(path), "--out", str(folder.place(run)), *sets]


def conversations(folder: RecipeFolder, stage: RecipeStage) -> list[str]:
    """Return the files of conversations of a stage; those of the family are written first."""
    config, section = folder.config, stage.cold_start
    if config.conversations or section is None:
        return [str(Path(name).resolve()) for name in config.conversations]
    target = folder.path / recipe_folder.CONVERSATIONS
    group = config.problems.partition("/")[2]
    if not target.exists():
        store = (
            synthetic_store(folder.path / recipe_folder.STORE, group)
            if config.is_synthetic
            else VerdictStore.read(Path(config.verdicts))
        )
        extent: Extent = "space" if config.is_synthetic else "census"
        rows = cold_start(
            group, store, section.mix, count=section.count, turns=section.turns, seed=0,
            extent=extent,
        )  # fmt: skip
        fresh = target.with_suffix(".new")
        with writing(folder.path):
            fresh.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
            fresh.replace(target)
    return [str(target)]
