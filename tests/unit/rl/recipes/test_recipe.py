"""Recipes are data: each value has an origin, and each stage has settings that a training takes."""

import math
import statistics

import pytest
import torch

from tilewright.errors import ConfigError, PluginError
from tilewright.registry import catalogue
from tilewright.rl.advantages import group_mean, turn_groups
from tilewright.rl.masked_tensors import masked
from tilewright.rl.recipes.recipe import find_recipe
from tilewright.rl.recipes.recipe_config import check_recipe, rehearsal, stage_settings, stage_tree
from tilewright.rl.recipes.recipe_text import explain_recipe

NAMES = tuple(catalogue("recipes", packages=()))


@pytest.mark.parametrize("name", NAMES)
def test_every_stage_of_a_recipe_has_valid_settings(name):
    recipe = find_recipe(name)
    check_recipe(recipe, rehearsal(variants=tuple(item.name for item in recipe.variants)))
    for stage in recipe.stages:
        paths = [item.path for item in stage.values]
        assert len(paths) == len(set(paths)), "a value is given twice"
        assert all(item.source for item in stage.values)
        for scale in ("paper", "small"):
            config = rehearsal().model_copy(update={"scale": scale})
            stage_settings(recipe, stage, config)


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_explains_its_formulas_and_marks_every_value(name):
    recipe = find_recipe(name)
    text = explain_recipe(recipe)
    assert all(line in text for line in recipe.formulas)
    for stage in recipe.stages:
        for item in stage.values:
            mark = "[P]" if item.origin == "paper" else "[D]"
            assert f"  {mark} {item.path} = " in text
    assert text.splitlines()[-1].startswith("[P]: value of the paper")


def test_unknown_names_are_named_with_those_that_exist():
    with pytest.raises(PluginError, match="no recipe 'auto'"):
        find_recipe("auto")
    recipe = find_recipe("autotriton")
    with pytest.raises(ConfigError, match="no stage 'rll'; stages: sft, rl"):
        check_recipe(recipe, rehearsal(changes={"rll": {}}))
    with pytest.raises(ConfigError, match="no variant 'without-tests'; variants: without-rule"):
        check_recipe(recipe, rehearsal(variants=("without-tests",)))
    with pytest.raises(ConfigError, match=r"stage rl: overrides\.loss\.clip: no such setting"):
        check_recipe(recipe, rehearsal(changes={"rl": {"overrides.loss.clip": 1}}))


def test_the_scale_paper_needs_a_model_and_conversations():
    recipe = find_recipe("autotriton")
    config = rehearsal(scale="paper")
    with pytest.raises(ConfigError, match="set model, or scale: small"):
        check_recipe(recipe, config)
    with pytest.raises(ConfigError, match="needs conversations"):
        check_recipe(recipe, config.model_copy(update={"model": "model"}))
    own = config.model_copy(update={"scale": "small", "problems": "bundled", "verdicts": ""})
    with pytest.raises(ConfigError, match="the family nano"):
        check_recipe(recipe, own)
    without = rehearsal(verdicts="")
    with pytest.raises(ConfigError, match="needs verdicts: synthetic, or a store"):
        check_recipe(recipe, without)


def test_contexts_and_files_are_looked_for_before_anything_runs(tmp_path):
    recipe, rows = find_recipe("kernel_smith"), tmp_path / "rows.jsonl"
    rows.write_text("{}")
    given = {"scale": "paper", "model": str(tmp_path), "conversations": (str(rows),)}
    with pytest.raises(ConfigError, match="the scale paper needs contexts"):
        check_recipe(recipe, rehearsal(**given))
    with pytest.raises(ConfigError, match=r"none\.jsonl: no such file"):
        check_recipe(recipe, rehearsal(**given, contexts=str(tmp_path / "none.jsonl")))


def test_changes_may_be_nested_and_may_not_give_what_the_recipe_gives():
    recipe = find_recipe("autotriton")
    nested = rehearsal(changes={"rl": {"overrides": {"optimizer": {"steps": 3}}}})
    dotted = rehearsal(changes={"rl": {"overrides.optimizer.steps": 3}})
    stage = recipe.stages[1]
    assert stage_tree(stage, nested) == stage_tree(stage, dotted)
    for path, said in (("seed", "seeds"), ("model.path", "model"), ("data.contexts", "contexts")):
        with pytest.raises(ConfigError, match=f"changes.rl.{path}: .*{said}"):
            check_recipe(recipe, rehearsal(changes={"rl": {path: 1}}))
    with pytest.raises(ConfigError, match="preset is a value and no section"):
        check_recipe(find_recipe("dr_kernel"), rehearsal(changes={"rl": {"preset.x": 1}}))


def test_changes_replace_settings_of_their_stage_alone():
    recipe = find_recipe("autotriton")
    config = rehearsal(changes={"rl": {"overrides.optimizer.steps": 3}})
    sft, rl = (stage_tree(stage, config) for stage in recipe.stages)
    assert rl["overrides"]["optimizer"] == {"learning_rate": 0.001, "steps": 3}
    assert "optimizer" not in sft["overrides"]
    without = stage_tree(recipe.stages[1], config, recipe.variants[0].changes)
    assert without["overrides"]["reward"]["triton_rule"] == "none"
    assert without["overrides"]["optimizer"]["steps"] == 3


@pytest.mark.parametrize(("ddof", "wanted"), [(0, (1.2910, -0.7746)), (1, (1.2076, -0.7246))])
def test_golden_advantages_of_autotriton(ddof, wanted):
    """GRPO (Shao et al. 2024): A_i = (r_i - mean) / (std + eps), a group of eight."""
    rewards = [1.0, 0, 0, 1, 1, 0, 0, 0]
    spread = (statistics.pstdev if ddof == 0 else statistics.stdev)(rewards)
    group = turn_groups(torch.zeros(8, dtype=torch.int64), 1)
    made = group_mean(
        masked([[value] for value in rewards]),
        group,
        singleton_advantage="zero",
        divide_by_std=True,
        ddof=ddof,
        epsilon=1e-9,
    ).values.flatten()
    for reward, value in zip(rewards, made.tolist(), strict=True):
        assert value == pytest.approx((reward - statistics.fmean(rewards)) / spread, abs=1e-6)
        assert value == pytest.approx(wanted[0] if reward else wanted[1], abs=1e-4)
    equal = masked([[1.0]] * 8)
    zeros = group_mean(equal, group, singleton_advantage="zero", divide_by_std=True, ddof=ddof)
    assert zeros.values.flatten().tolist() == [0.0] * 8
    assert not any(map(math.isnan, zeros.values.flatten().tolist()))
