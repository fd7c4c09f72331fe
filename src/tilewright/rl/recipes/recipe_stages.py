"""The stages of a recipe as commands: each is a training with a run folder of its own. No torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from tilewright.errors import ConfigError, InfrastructureError, writing
from tilewright.rl.recipes import recipe_folder
from tilewright.rl.recipes.recipe import RecipeData
from tilewright.rl.recipes.recipe_config import stage_tree
from tilewright.rl.recipes.recipe_folder import RecipeFolder, StageRun
from tilewright.rl.stage_runner import Shown, TrainingStage, run_command, settings_text
from tilewright.rl.study.study_folder import resumable_run


def stages_of(folder: RecipeFolder, shown: Shown) -> Iterator[TrainingStage]:
    """Yield the trainings of a recipe as stages."""
    for run in folder.runs():
        yield TrainingStage(run.name, _done(folder, run), _trained(folder, run, shown))


def _done(folder: RecipeFolder, run: StageRun) -> Callable[[], bool]:
    return lambda: folder.is_done(run)


def _trained(folder: RecipeFolder, run: StageRun, shown: Shown) -> Callable[[float], None]:
    def train(until: float) -> None:
        place = folder.place(run)
        log = folder.path / recipe_folder.LOGS / f"{run.name}.txt"
        with writing(folder.path):
            log.parent.mkdir(exist_ok=True)
        begun = resumable_run(place)
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
    given |= data_of(folder, run)
    with writing(folder.path):
        path.write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")
    sets = [word for text in settings_text(given) for word in ("--set", text)]
    return [str(path), "--out", str(folder.place(run)), *sets]


def data_of(folder: RecipeFolder, run: StageRun) -> dict[str, Any]:
    """Return the settings that name the data of a run; those of the family are written first."""
    config, stage = folder.config, run.stage
    if stage.verb == "sft" and config.conversations:
        files = [str(Path(name).resolve()) for name in config.conversations]
        return {"data.conversations": files}
    if stage.verb == "rl" and config.contexts:
        return {"data.contexts": str(Path(config.contexts).resolve())}
    if stage.verb == "choices" and config.trees:
        found = {"data.trees": str(Path(config.trees).resolve())}
        if config.held_out_trees:
            found["data.held_out_trees"] = str(Path(config.held_out_trees).resolve())
        return found
    prepare = run.variant.prepare if run.variant and run.variant.prepare else stage.prepare
    if prepare is None or config.scale != "small":
        return {}
    group, held_out = (name.partition("/")[2] for name in (config.problems, config.held_out))
    return prepare(RecipeData(folder.path, group, config.verdicts, held_out))
