"""The gain of a training follows from its event log: rewards of the first and the last steps."""

import math
import statistics

import pytest

from tilewright.records.event_log import EventLog
from tilewright.records.events import (
    Ask,
    EvalSummary,
    Reply,
    RunStarted,
    Stepped,
    Turn,
    TurnFinished,
)
from tilewright.rl.recipes.recipe import find_recipe
from tilewright.rl.recipes.recipe_config import rehearsal, stage_settings
from tilewright.rl.recipes.recipe_folder import open_recipe
from tilewright.rl.recipes.recipe_page import PAGE, recipe_pages, trained_of
from tilewright.rl.recipes.recipe_results import gain_of

KERNEL = """\
import triton
import triton.language as tl

@triton.jit
def k(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)

def compute(x):
    out = x.new_empty(x.shape)
    k[(1,)](x, out, x.numel(), BLOCK=1024)
    return out
"""
TORCH = "def compute(x):\n    return x\n"
STEPS = {
    "step00000": {"p": [(KERNEL, "correct"), (TORCH, "correct"), (KERNEL, "incorrect")]},
    "step00001": {"p": [(KERNEL, "correct"), (KERNEL, "unjudged")], "q": [(TORCH, "correct")]},
    "step00002": {"p": [(KERNEL, "correct"), (KERNEL, "rejected")]},
}
"""Programs and verdicts by batch and problem."""


def recorded(place):
    run = place / "20260101-000000-aaaa"
    run.mkdir(parents=True)
    (run / "run.yaml").write_text("")
    with EventLog(run) as log:
        log.append(
            RunStarted(
                kind="train",
                name="x",
                problems="nano",
                protocols=("strict",),
                evaluator="1",
                device="none",
            )
        )
        for number, (batch, problems) in enumerate(STEPS.items(), 1):
            for problem, programs in problems.items():
                for place, (code, verdict) in enumerate(programs):
                    log.append(finished(f"{batch}/{problem}.0#{place}.0", problem, code, verdict))
            log.append(Stepped(step=number, batch=batch, figures={"reward": 0.5, "correct": 1.0}))
    return run


def finished(name, problem, code, verdict):
    unchecked = 1.5 if verdict == "rejected" else None
    found = EvalSummary(
        protocol="strict", verdict=verdict, unchecked=unchecked, unchecked_speedup_low=unchecked
    )
    ask = Ask(id=name, problem=problem, sample=0, turn=0)
    reply = Reply(text=code)
    return TurnFinished(turn=Turn(ask=ask, reply=reply, code=code, judgements=(found,)))


def test_the_gain_is_the_difference_of_the_means_with_its_interval(tmp_path):
    recipe, config = find_recipe("autotriton"), rehearsal()
    recorded(tmp_path)
    gain = gain_of(tmp_path, stage_settings(recipe, recipe.stages[1], config), 3)
    # Without checks, as the recipe says, the rejected program passes the tests. The unjudged turn
    # has no reward, and problem q is not in the first batch.
    first, last = [1.0, 0.0, 0.0], [1.0, 1.0, 1.0]
    # Two degrees of freedom: the last rewards have no variance.
    half = 4.303 * math.sqrt(statistics.variance(first) / 3)
    assert (gain.start, gain.end) == (statistics.fmean(first), statistics.fmean(last))
    assert gain.low == pytest.approx(2 / 3 - half, abs=1e-4)
    assert gain.high == pytest.approx(2 / 3 + half, abs=1e-4)
    assert gain.programs == 7


def test_a_training_of_one_step_has_no_gain(tmp_path):
    recipe = find_recipe("autotriton")
    settings = stage_settings(recipe, recipe.stages[1], rehearsal())
    assert gain_of(tmp_path, settings, 3) is None


def test_the_page_says_synthetic_in_every_row_and_file(tmp_path):
    folder = open_recipe(tmp_path, find_recipe("autotriton"), rehearsal(seeds=1))
    recorded(tmp_path / "rl-0")
    assert [item.run.name for item in trained_of(folder)] == ["rl-0"]
    pages = recipe_pages(folder, {"rl-0": 12.0})
    rows = [line for line in pages[PAGE].splitlines() if line.startswith("| rl-0")]
    assert rows[0].startswith("| rl-0, synthetic | 7 | 0.333 | 1.000 | +0.667 [")
    assert all(name.startswith("synthetic-") for name in pages if name != PAGE)
    assert all("synthetic verdicts" in text for name, text in pages.items() if name != PAGE)
    assert "Verdicts are" not in pages[PAGE]
    assert recipe_pages(folder, {"rl-0": 12.0}) == pages
