"""A small recipe end to end: real trainings, a kill, the page, and rewards computed again."""

# ruff: noqa: E402 - a machine without trl skips all of it
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import yaml
from click.testing import CliRunner

pytest.importorskip("trl")
pytestmark = [
    *(pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)),
    pytest.mark.slow,
]

from tests.conventions.tree import ROOT
from tilewright.cli.main import cli
from tilewright.records.event_log import EVENTS, read_events
from tilewright.records.events import Stepped, TurnFinished
from tilewright.rl.recipes.recipe import find_recipe
from tilewright.rl.recipes.recipe_folder import read_recipe
from tilewright.rl.recipes.recipe_page import PAGE, trained_of
from tilewright.rl.study.study_folder import figures_of, run_in

NAMES = ("autotriton", "cuda_l1", "dr_kernel", "kernel_smith", "mtmc")
SMALL = {
    "scale": "small",
    "problems": "nano/rehearsal",
    "verdicts": "synthetic",
    "variants": ["without-rule"],
    "last_steps": 1,
    "changes": {
        "sft": {"overrides.sft.epochs": 1},
        "rl": {
            "overrides.sampling.prompts": 2,
            "overrides.sampling.rollouts": 4,
            "overrides.optimizer.steps": 3,
            "checkpoints.every": 1,
        },
    },
}


def invoke(*words):
    return CliRunner().invoke(cli, ["train", "recipe", *map(str, words)])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return the folder of a recipe that was killed in its second training and continued."""
    made = tmp_path_factory.mktemp("recipe")
    config, out = made / "small.yaml", made / "out"
    config.write_text(yaml.safe_dump(SMALL))
    words = [sys.executable, "-m", "tilewright", "train", "recipe", "autotriton"]
    words += [str(config), "--out", str(out)]
    child = subprocess.Popen(words, stderr=subprocess.DEVNULL, start_new_session=True)
    until = time.monotonic() + 300
    while not list((out / "rl-0").glob(f"*/{EVENTS}")):
        assert child.poll() is None, "it ended before it was killed"
        assert time.monotonic() < until
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    done = invoke("autotriton", config, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["complete"]
    return config, out


def test_a_killed_recipe_continues_and_draws_its_page(trained):
    _, out = trained
    folder = read_recipe(out)
    assert all(folder.is_done(run) for run in folder.runs())
    assert [item.run.name for item in trained_of(folder)] == ["rl-0", "without-rule-0"]
    assert [len(figures_of(out / name)) for name in ("rl-0", "without-rule-0")] == [3, 3]
    page = (out / PAGE).read_text()
    assert "**synthetic**" in page
    assert "| rl-0, synthetic | 24 |" in page
    assert "| without-rule | " in page


def test_the_settings_of_a_folder_cannot_change(trained, tmp_path):
    config, out = trained
    changed = tmp_path / "changed.yaml"
    changed.write_text(yaml.safe_dump({**SMALL, "seeds": 2}))
    refused = invoke("autotriton", changed, "--out", out)
    assert refused.exit_code == 2
    assert "another value of seeds" in refused.output
    other = invoke("dr_kernel", config, "--out", out)
    assert other.exit_code == 2


def test_the_log_gives_the_trained_rewards_and_advantages_again(trained):
    _, out = trained
    paid = 0.0
    for name in ("rl-0", "without-rule-0"):
        run = run_in(out / name)
        for event in read_events(run):
            if not isinstance(event, Stepped):
                continue
            found, figures = replayed(run, event.batch), event.figures
            assert found["reward"] == pytest.approx(figures["reward"], abs=1e-12)
            known = [row["advantage"] for row in found["masks"] if row["advantage"] is not None]
            assert len(known) == figures["turns"]
            assert max(known) == pytest.approx(figures["advantage/most"], abs=1e-12)
            assert min(known) == pytest.approx(figures["advantage/least"], abs=1e-12)
            paid += figures["reward"]
    assert paid > 0, "no program earned anything, so the comparison shows little"


def replayed(run, batch):
    words = ["train", "replay", str(run), "--json", "--explain", "--batch", batch]
    made = CliRunner().invoke(cli, words)
    assert made.exit_code == 0, made.output
    (found,) = json.loads(made.stdout)["presets"]["as trained"]["batches"]
    return found


def test_the_rule_alone_differs_between_the_recipe_and_its_variant(trained):
    _, out = trained
    logs = [
        [event for event in read_events(run_in(out / name)) if isinstance(event, TurnFinished)]
        for name in ("rl-0", "without-rule-0")
    ]
    # Equal weights and seeds: the first batches are the same programs, with other rewards.
    first = [
        {e.turn.ask.id: e.turn.source for e in log if e.turn.ask.id.startswith("step00000/")}
        for log in logs
    ]
    assert first[0] == first[1]
    assert all("not_triton" in step for step in figures_of(out / "rl-0"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "needs a NAME"),
        (("autotrit",), "did you mean"),
        (("autotriton",), "needs a CONFIG, or --rehearse"),
        (("autotriton", "--rehearse"), "needs --out DIR"),
        (("autotriton", "none.yaml"), "no such file"),
        (("autotriton", "none.yaml", "--seeds", "2"), "--seeds is for --rehearse"),
        (("autotriton", "--rehearse", "--variants", "x", "--out", "o"), "has no variant 'x'"),
    ],
)
def test_bad_words_are_named_with_exit_status_2(words, said):
    refused = invoke(*words)
    assert refused.exit_code == 2, refused.output
    assert said in refused.output


def test_the_settings_of_each_stage_are_shown_without_a_training():
    shown = invoke("autotriton", "--rehearse", "--show")
    assert shown.exit_code == 0
    assert yaml.safe_load(shown.stdout)["rl"]["overrides"]["sampling"]["rollouts"] == 16
    listed = invoke("--list", "--json")
    assert [row["name"] for row in json.loads(listed.stdout)] == list(NAMES)


def test_a_comparison_needs_two_recipes(trained):
    _, out = trained
    refused = invoke("--compare", out, "--compare", out)
    assert refused.exit_code == 2
    assert "at least two recipes" in refused.output
    assert invoke("--compare", out.parent).exit_code == 2
    assert invoke("autotriton", "--compare", out).exit_code == 2


@pytest.mark.nightly
def test_a_recipe_of_the_commit_gives_its_rewards_again(trained, tmp_path):
    """test_the_log_gives_the_trained_rewards_and_advantages_again covers one recipe."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout
    others = [name for name in NAMES if name != "autotriton"]
    name = others[int(commit or "0", 16) % len(others)]
    steps = {"overrides.optimizer.steps": 2, "overrides.sampling.prompts": 2}
    stages = [stage.name for stage in find_recipe(name).stages if stage.verb != "sft"]
    changes = {"sft": {"overrides.sft.epochs": 1}, **dict.fromkeys(stages, steps)}
    config = {**SMALL, "variants": [], "changes": changes, "tried_configurations": 4}
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(config))
    out = tmp_path / "out"
    done = invoke(name, tmp_path / "small.yaml", "--out", out)
    assert done.exit_code == 0, done.output
    for run in (run_in(out / f"{stage}-0") for stage in stages):
        for event in read_events(run):
            if isinstance(event, Stepped):
                found, figures = replayed(run, event.batch), event.figures
                assert found["reward"] == pytest.approx(figures["reward"], abs=1e-12), run
                known = [row["advantage"] for row in found["masks"] if row["advantage"] is not None]
                assert max(known) == pytest.approx(figures["advantage/most"], abs=1e-12), run
                assert min(known) == pytest.approx(figures["advantage/least"], abs=1e-12), run
    shown = invoke("--compare", trained[1], "--compare", out)
    assert shown.exit_code == 0, shown.output
    assert "Some verdicts are **synthetic**" in shown.output
    assert f"| {name} | a new model | synthetic | 4 | 1 |" in shown.output
    assert "| highest | not resolved |" in shown.output
    found = json.loads(invoke("--compare", trained[1], "--compare", out, "--json").stdout)
    assert found["programs"] > 0
    assert set(found["means"]["correct"]) == {"autotriton", name}
