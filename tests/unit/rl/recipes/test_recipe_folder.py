"""A folder of a recipe keeps its settings, and knows the model that each training begins with."""

import dataclasses

import pytest
import yaml

from tilewright.errors import ConfigError, RecordError
from tilewright.rl.recipes.recipe import find_recipe
from tilewright.rl.recipes.recipe_config import load_recipe_config, rehearsal
from tilewright.rl.recipes.recipe_folder import RECIPE, open_recipe, read_recipe
from tilewright.rl.stage_runner import held

AUTOTRITON = find_recipe("autotriton")
CONFIG = rehearsal(seeds=2, variants=("without-rule",))


def finish(folder, run):
    model = folder.place(run) / "20260101-000000-aaaa" / "model"
    model.mkdir(parents=True)
    (model.parent / "run.yaml").write_text("")
    (model / "tokenizer_config.json").write_text("{}")
    return str(model)


def test_supervised_learning_runs_once_and_each_seed_begins_with_its_model(tmp_path):
    folder = open_recipe(tmp_path / "out", AUTOTRITON, CONFIG)
    runs = list(folder.runs())
    assert [run.name for run in runs] == [
        *("sft", "rl-0", "rl-1", "without-rule-0", "without-rule-1")
    ]
    assert folder.start_of(runs[0]) == ""
    assert folder.start_of(runs[1]) == ""
    assert not folder.is_done(runs[0])
    model = finish(folder, runs[0])
    assert folder.is_done(runs[0])
    assert {folder.start_of(run) for run in runs[1:]} == {model}


def test_a_later_stage_begins_with_the_model_of_its_own_seed(tmp_path):
    second = dataclasses.replace(AUTOTRITON.stages[1], name="rl2")
    longer = dataclasses.replace(AUTOTRITON, stages=(*AUTOTRITON.stages, second), variants=())
    folder = open_recipe(tmp_path / "out", longer, rehearsal(seeds=2))
    runs = {run.name: run for run in folder.runs()}
    assert list(runs) == ["sft", "rl-0", "rl-1", "rl2-0", "rl2-1"]
    models = [finish(folder, runs[name]) for name in ("rl-0", "rl-1")]
    assert [folder.start_of(runs[name]) for name in ("rl2-0", "rl2-1")] == models


def test_a_folder_keeps_its_recipe_and_its_settings(tmp_path):
    open_recipe(tmp_path, AUTOTRITON, CONFIG)
    assert open_recipe(tmp_path, AUTOTRITON, CONFIG).config == CONFIG
    found = read_recipe(tmp_path)
    assert (found.recipe, found.config) == (AUTOTRITON, CONFIG)
    with pytest.raises(ConfigError, match="another value of seeds"):
        open_recipe(tmp_path, AUTOTRITON, CONFIG.model_copy(update={"seeds": 3}))
    more = CONFIG.model_copy(update={"tried_configurations": 3})
    assert open_recipe(tmp_path, AUTOTRITON, more).config == more
    assert read_recipe(tmp_path).config == more
    with pytest.raises(ConfigError, match="another value of recipe"):
        open_recipe(tmp_path, find_recipe("dr_kernel"), CONFIG.model_copy(update={"variants": ()}))


def test_two_processes_cannot_train_in_one_folder(tmp_path):
    folder = open_recipe(tmp_path, AUTOTRITON, CONFIG)
    place = folder.path
    with held(place), pytest.raises(ConfigError, match="another process trains"), held(place):
        pass
    with held(place):
        pass


def test_a_folder_that_an_older_version_began_is_continued(tmp_path):
    open_recipe(tmp_path, AUTOTRITON, CONFIG)
    tree = yaml.safe_load((tmp_path / RECIPE).read_text())
    del tree["tried_configurations"], tree["last_steps"]
    (tmp_path / RECIPE).write_text(yaml.safe_dump(tree))
    assert open_recipe(tmp_path, AUTOTRITON, CONFIG).config == CONFIG


def test_damaged_and_missing_files_are_named(tmp_path):
    with pytest.raises(ConfigError, match="no folder of a recipe"):
        read_recipe(tmp_path)
    for text in ("{", "- 1", "recipe: autotriton\nseeds: none\n"):
        (tmp_path / RECIPE).write_text(text)
        with pytest.raises(RecordError, match=RECIPE):
            read_recipe(tmp_path)
    with pytest.raises(ConfigError, match="no such file"):
        load_recipe_config(tmp_path / "none.yaml")
    path = tmp_path / "recipe-settings.yaml"
    path.write_text(yaml.safe_dump({"problems": "nano/rehearsal", "seed": 1}))
    with pytest.raises(ConfigError, match="seed"):
        load_recipe_config(path)
