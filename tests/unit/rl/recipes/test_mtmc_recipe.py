"""The data of the recipe mtmc at the scale small, and its part of the page."""

import json
from pathlib import Path

import pytest

from tests.choice_trees import small_tree
from tilewright.errors import ConfigError
from tilewright.languages.actions import STOP
from tilewright.records.event_log import EventLog
from tilewright.records.events import RunStarted, Stepped
from tilewright.rl.choices.action_tree import read_trees, write_trees
from tilewright.rl.recipes.choice_table import choice_lines
from tilewright.rl.recipes.mtmc_recipe import CHOICES_PER_STATE, PPO_STAGE, RECIPE, SFT
from tilewright.rl.recipes.recipe import RecipeData
from tilewright.rl.recipes.recipe_config import check_recipe, rehearsal, stage_settings
from tilewright.rl.recipes.recipe_folder import StageRun, open_recipe
from tilewright.rl.recipes.recipe_stages import data_of


def test_trees_and_sentences_are_written_once_and_are_equal_each_time(tmp_path):
    texts = []
    for name in ("one", "two"):
        data = RecipeData(tmp_path / name, "rehearsal", "synthetic", "square_bias_silu")
        data.path.mkdir()
        found = PPO_STAGE.prepare(data) | SFT.prepare(data)
        assert set(found) == {"data.trees", "data.held_out_trees", "data.conversations"}
        texts.append([path.read_bytes() for path in sorted(data.path.glob("*.jsonl"))])
        before = (data.path / "trees.jsonl").stat().st_mtime_ns
        PPO_STAGE.prepare(data)
        assert (data.path / "trees.jsonl").stat().st_mtime_ns == before
    assert texts[0] == texts[1]


def test_the_warm_start_shows_legal_sentences_alone(tmp_path):
    data = RecipeData(tmp_path, "rehearsal", "synthetic")
    (path,) = SFT.prepare(data)["data.conversations"]
    legal = {}
    for tree in read_trees(tmp_path / "trees.jsonl"):
        legal |= {node.code: node.sentences for node in tree.nodes if node.is_correct}
    counts = dict.fromkeys(legal, 0)
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        messages = json.loads(line)["messages"]
        assert [item["weight"] for item in messages] == [0, 0, 0, 1]
        assert messages[-1]["content"] in legal[messages[1]["content"]]
        counts[messages[1]["content"]] += 1
    assert set(counts.values()) == {CHOICES_PER_STATE}
    assert all(sentences[-1] == STOP for sentences in legal.values())


def test_given_trees_take_the_place_of_those_of_the_family(tmp_path):
    for name in ("trees", "held"):
        write_trees(tmp_path / f"{name}.jsonl", [small_tree(name)])
    given = {name: str(tmp_path / f"{path}.jsonl") for name, path in FILES.items()}
    config = rehearsal(problems="bundled", verdicts="", conversations=(given["trees"],), **given)
    check_recipe(RECIPE, config)
    folder = open_recipe(tmp_path / "out", RECIPE, config)
    assert data_of(folder, StageRun(PPO_STAGE, 0)) == {f"data.{n}": p for n, p in given.items()}
    with pytest.raises(ConfigError, match="without trees, the scale small needs"):
        check_recipe(RECIPE, config.model_copy(update={"trees": ""}))


FILES = {"trees": "trees", "held_out_trees": "held"}


def test_the_page_shows_shares_of_the_best_value_and_the_calls_of_the_coder(tmp_path):
    folder = open_recipe(tmp_path, RECIPE, rehearsal(seeds=1))
    assert list(choice_lines(folder)) == []
    run = folder.place(StageRun(PPO_STAGE, 0)) / "20260101-000000-aaaa"
    run.mkdir(parents=True)
    (run / "run.yaml").write_text("")
    shares = {f"train/{name}_share": 0.5 for name in ("greedy", "sampled", "uniform")}
    with EventLog(run) as log:
        log.append(
            RunStarted(
                kind="choices",
                name="x",
                problems="nano",
                protocols=("strict",),
                evaluator="1",
                device="none",
            )
        )
        for step, value in ((0, 0.1), (40, 0.9)):
            figures = {**shares, "train/first_action_share": value}
            log.append(Stepped(step=step, batch=f"score{step:05}", figures=figures))
    lines = list(choice_lines(folder))
    values = [line for line in lines if line.startswith("| ppo-0, synthetic")]
    assert values == [
        "| ppo-0, synthetic | training problems | 0 | 0.500 | 0.500 | 0.500 | 0.100 |",
        "| ppo-0, synthetic | training problems | 40 | 0.500 | 0.500 | 0.500 | 0.900 |",
    ]
    success = stage_settings(RECIPE, PPO_STAGE, folder.config).estimator().choices.coder_success
    (calls,) = [line for line in lines if line.startswith("| 4 | ")]
    assert f"| {4 / success:.3f} | " in calls
    assert f"| {success**-4:.3f} | " in calls
