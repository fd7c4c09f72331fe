"""The score of a search is its fastest correct program, against the fastest one of the store."""

import pytest

from tests.unit.rl.recipes.test_recipe_results import KERNEL, finished
from tilewright.records.event_log import EventLog
from tilewright.records.events import RunStarted, Stepped
from tilewright.rl.recipes.driven_searches import (
    SEARCHED,
    best_by_search,
    fastest_known,
    search_score,
)
from tilewright.rl.recipes.recipe import RecipeData, find_recipe
from tilewright.rl.recipes.recipe_config import rehearsal
from tilewright.rl.recipes.recipe_folder import StageRun, open_recipe
from tilewright.rl.recipes.recipe_page import PAGE, recipe_pages

PROBLEM = "nano/bias_softmax_scale"
SPEEDUPS = {
    "score00001/nano/bias_softmax_scale.0#0": [9.0],
    "score00002/nano/bias_softmax_scale.0#0": [1.0, 2.0, None, 1.5],
    "score00002/nano/bias_softmax_scale.0#1": [None, None],
    "step00001/nano/bias_softmax_scale.0#0": [9.0],
}
"""Speed-ups of the turns of each trajectory, `None` for a program that is not correct."""


def turn(name, speedup):
    made = finished(name, PROBLEM, KERNEL, "correct" if speedup else "incorrect")
    summary = made.turn.judgements[0].model_copy(update={"speedup": speedup})
    return made.model_copy(update={"turn": made.turn.model_copy(update={"judgements": (summary,)})})


def recorded(place):
    run = place / "20260101-000000-aaaa"
    run.mkdir(parents=True)
    (run / "run.yaml").write_text("")
    begun = RunStarted(
        kind="train",
        name="x",
        problems="nano",
        protocols=("strict",),
        evaluator="1",
        device="none",
    )
    with EventLog(run) as log:
        log.append(begun)
        for name, speedups in SPEEDUPS.items():
            log.extend(turn(f"{name}.{n}", speedup) for n, speedup in enumerate(speedups))
        log.append(Stepped(step=1, batch="step00001", figures={"reward": 0.5}))
    return run


def test_the_last_score_alone_counts_and_its_best_correct_programs(tmp_path):
    run = recorded(tmp_path)
    assert best_by_search(run) == {
        (PROBLEM, "score00002/nano/bias_softmax_scale.0#0"): 2.0,
        (PROBLEM, "score00002/nano/bias_softmax_scale.0#1"): 0.0,
    }


def test_the_score_is_a_share_of_the_fastest_program_of_the_store(tmp_path):
    recipe = find_recipe("kernel_smith")
    config = rehearsal(held_out="nano/held_out", seeds=1)
    folder = open_recipe(tmp_path, recipe, config)
    run = StageRun(recipe.stage("rl"), 0)
    assert search_score(folder, run) is None
    recorded(folder.place(run))
    fastest = fastest_known(RecipeData(tmp_path, "held_out", "synthetic"))[PROBLEM]
    assert search_score(folder, run) == pytest.approx((2.0 / fastest + 0.0) / 2)
    page = recipe_pages(folder, {})[PAGE]
    assert "best of its searches" in page
    assert f"{(2.0 / fastest) / 2:.3f}" in page


def test_searches_on_problems_without_a_stored_program_have_no_score(tmp_path):
    config = rehearsal(held_out="nano/rehearsal", seeds=1)
    folder = open_recipe(tmp_path, find_recipe("kernel_smith"), config)
    run = StageRun(folder.recipe.stage("rl"), 0)
    recorded(folder.place(run))
    assert PROBLEM not in fastest_known(RecipeData(tmp_path, "rehearsal", "synthetic"))
    assert search_score(folder, run) is None


def test_the_variants_of_kernel_smith_name_the_score_of_searches():
    variants = find_recipe("kernel_smith").variants
    assert {item.name: item.figure for item in variants} == {
        "all-steps": SEARCHED,
        "first-steps": SEARCHED,
    }
