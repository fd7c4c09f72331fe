"""Contrastive training on a toy: exemplars, smoothed rewards and skipped steps of a real run."""

# ruff: noqa: E402 - a machine without trl skips all of it
from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

pytest.importorskip("trl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(300)]

from tests.training_fixtures import begun, cold_start, settings, silent, weights
from tilewright.cli.main import cli
from tilewright.errors import ConfigError
from tilewright.records.event_log import read_events
from tilewright.records.events import EvalSummary, Stepped, TurnFinished
from tilewright.rl import training_run
from tilewright.rl.engines.trl.reinforce import train_rl
from tilewright.testing.synth_world import SynthWorld

CONTRASTIVE = (
    "overrides.exemplars.selection=buckets",
    "overrides.exemplars.count=2",
    "overrides.exemplars.delta=0.2",
    "overrides.exemplars.tau=0.7",
    "overrides.smoothing.window=6",
    "overrides.smoothing.clip=1.2",
    "overrides.advantage.estimator=grpo",
    "overrides.sampling.turns=1",
    "overrides.sampling.context_tokens=256",
    "overrides.mismatch.level='off'",
    "data.held_out=''",
    "data.problems=synth/0-2",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return cold_start(tmp_path_factory.mktemp("exemplars"))


@pytest.fixture(scope="module")
def whole(place):
    """Return a finished contrastive training."""
    folder = begun(place, "whole", *CONTRASTIVE)
    train_rl(settings(place, *CONTRASTIVE), folder, print, silent)
    return folder


def turns_in(folder):
    return [event.turn for event in read_events(folder) if isinstance(event, TurnFinished)]


@pytest.mark.reads_settings
def test_prompts_show_programs_of_earlier_batches_alone(whole):
    turns = turns_in(whole)
    by_request = {turn.ask.id: turn for turn in turns}
    shown = [(turn, by_request[name]) for turn in turns for name in turn.ask.shown_turns]
    assert shown, "no prompt had an exemplar, so the test shows nothing"
    for turn, exemplar in shown:
        assert exemplar.ask.id.partition("/")[0] < turn.ask.id.partition("/")[0]
        assert exemplar.ask.problem == turn.ask.problem
        assert exemplar.judgements[0].verdict == "correct"
        assert turn.ask.form == "exemplars"
    figures = [event.figures for event in read_events(whole) if isinstance(event, Stepped)]
    assert figures[0]["exemplars"] == 0
    assert max(step["exemplars"] for step in figures) > 0


def test_the_log_gives_smoothed_rewards_and_advantages_again(whole):
    paid = 0.0
    for event in read_events(whole):
        if not isinstance(event, Stepped):
            continue
        words = ["train", "replay", str(whole), "--json", "--explain", "--batch", event.batch]
        made = json.loads(CliRunner().invoke(cli, words).stdout)
        (found,), figures = made["presets"]["as trained"]["batches"], event.figures
        known = [row["advantage"] for row in found["masks"]]
        assert max(known) == pytest.approx(figures["advantage/most"], abs=1e-12)
        assert min(known) == pytest.approx(figures["advantage/least"], abs=1e-12)
        assert found["reward"] == pytest.approx(figures["reward"], abs=1e-12)
        assert all(abs(row["return"]) <= 1.2 for row in found["masks"])
        paid += figures["reward"]
    assert paid > 0, "no program earned anything, so the comparison shows little"


def test_a_killed_training_ends_with_the_weights_of_an_undisturbed_one(place, whole):
    folder, steps = begun(place, "killed", *CONTRASTIVE), []

    def stop(text):
        if text.startswith("step "):
            steps.append(text)
        if len(steps) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_rl(settings(place, *CONTRASTIVE), folder, stop, silent)
    train_rl(settings(place, *CONTRASTIVE), folder, silent, silent)
    asks = [[turn.ask for turn in turns_in(each)] for each in (folder, whole)]
    assert {ask.id: ask for ask in asks[0]} == {ask.id: ask for ask in asks[1]}
    assert weights(folder) == weights(whole)


class Wrong(SynthWorld):
    """Judges every reply to be wrong."""

    def evaluate(self, draft, problem):
        said = EvalSummary(protocol="strict", verdict="incorrect")
        return super().evaluate(draft, problem).model_copy(update={"judgements": (said,)})


@pytest.mark.reads_settings
def test_a_batch_without_a_success_moves_the_weights_only_without_the_setting(place, monkeypatch):
    monkeypatch.setattr(training_run, "open_world", lambda *_: Wrong())
    found = {}
    for name, skips in (("still", "true"), ("moved", "false")):
        changes = (f"overrides.optimizer.skip_without_advantage={skips}", "data.held_out=''")
        folder = begun(place, name, *changes)
        train_rl(settings(place, *changes), folder, silent, silent)
        found[name] = weights(folder)
        figures = [event.figures for event in read_events(folder) if isinstance(event, Stepped)]
        assert [step.get("skipped") for step in figures] == [1.0 if name == "still" else None] * 4
    assert found["still"] == weights(place)
    assert found["moved"] != found["still"]


def test_exemplars_and_stored_contexts_exclude_each_other(place):
    with pytest.raises(ConfigError, match="not both"):
        settings(place, "overrides.exemplars.selection=best", "data.contexts=some.jsonl")
